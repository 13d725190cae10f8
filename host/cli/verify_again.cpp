#include "verify_again.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/error.hpp>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;
using conformance::case_result;

constexpr const char* shift_variable = "HOLDFAST_CLOCK_SHIFT"; // see wrong_clock.cpp
constexpr auto rough = std::chrono::minutes{1};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& each : words) all.push_back(each.data());
    all.push_back(nullptr);
    return all;
}

fs::path this_program() {
    return fs::read_symlink("/proc/self/exe");
}

// How far this process's clock is from the machine's.
duration clock_error() {
    timespec real{};
    ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    const auto machine = std::chrono::seconds{real.tv_sec} + std::chrono::nanoseconds{real.tv_nsec};
    return std::chrono::system_clock::now().time_since_epoch() - machine;
}

[[noreturn]] void cannot_shift(const std::string& why) {
    throw failed({errc::unsupported, "the clock cannot be made wrong here: " + why, std::nullopt});
}

std::string one_line(std::string text) {
    for (char& each : text)
        if (each == '\n' || each == '\t') each = ' ';
    return text;
}

} // namespace

std::vector<std::string> verify_again(const arguments& given, std::vector<std::string> more) {
    std::vector<std::string> words = {this_program().string(), "verify", given.operands().front()};
    const auto add = [&](std::string name, std::string value) {
        words.push_back(std::move(name));
        words.push_back(std::move(value));
    };
    for (const std::string& each : given.values("--option")) add("--option", each);
    if (const auto runtime = given.value("--runtime")) add("--runtime", *runtime);
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::optional<duration> read_clock(const arguments& given) {
    const auto text = given.value("--clock");
    if (!text) return std::nullopt;
    const bool behind = text->starts_with('-');
    const bool ahead = text->starts_with('+');
    const auto by = parse_duration(std::string_view(*text).substr(behind || ahead ? 1 : 0));
    if (!by || (*by != duration::zero() && (!(behind || ahead) || *by < 2 * rough)))
        throw usage_error("--clock " + *text + ": expected a time with its sign, such as +1h, or 0");
    return behind ? -*by : *by;
}

void shift_clock(duration by) {
    const auto seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(by).count());
    const char* shifted = std::getenv(shift_variable);
    if (shifted != nullptr && shifted == seconds) {
        if (std::chrono::abs(clock_error() - by) > rough)
            cannot_shift("this program does not ask its libraries for the time");
        return;
    }
    const fs::path library = this_program().parent_path() / HOLDFAST_WRONG_CLOCK_FROM_BIN;
    if (!fs::exists(library)) cannot_shift(library.lexically_normal().string() + " is not there");
    ::setenv(shift_variable, seconds.c_str(), 1);
    ::setenv("LD_PRELOAD", library.c_str(), 1);
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> words;
    for (std::size_t at = 0; at < all.size(); at += words.back().size() + 1) words.emplace_back(all.c_str() + at);
    ::execv("/proc/self/exe", pointers_to(words).data());
    cannot_shift(std::strerror(errno));
}

bool goes_by_this_clock(store_time present, duration wrong_by) {
    return std::chrono::abs(present - std::chrono::system_clock::now()) < std::chrono::abs(wrong_by) / 2;
}

void line_report::add(const case_result& r) {
    std::cout << static_cast<int>(r.state) << '\t' << r.took.count() << '\t' << one_line(r.title()) << '\t'
              << one_line(r.message) << "\n"
              << std::flush;
}

void line_report::skipped(const std::string& why) {
    std::cout << static_cast<int>(case_result::skipped) << "\t0\tall cases\t" << one_line(why) << "\n";
}

conformance::summary verify_with_clock(const arguments& given, const std::string& wrong_by,
                                       const std::function<void(const case_result&)>& report) {
    std::vector<std::string> more = {"--clock", wrong_by, "--lines"};
    for (const char* each : {"--filter", "--seed"})
        if (const auto value = given.value(each)) more.insert(more.end(), {each, *value});
    auto words = verify_again(given, more);
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) throw failed({errc::unavailable, std::strerror(errno), std::nullopt});
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    pid_t child = -1;
    const int problem =
        ::posix_spawn(&child, words.front().c_str(), &actions, nullptr, pointers_to(words).data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (problem != 0) {
        ::close(ends[0]);
        throw failed({errc::unavailable, words.front() + ": " + std::strerror(problem), std::nullopt});
    }

    conformance::summary total;
    const auto add = [&](case_result r) {
        r.group = "clock " + wrong_by;
        r.number = total.passed + total.failed + total.skipped + 1;
        ++(r.state == case_result::passed   ? total.passed
           : r.state == case_result::failed ? total.failed
                                            : total.skipped);
        report(r);
    };
    FILE* lines = ::fdopen(ends[0], "r");
    char* line = nullptr;
    std::size_t room = 0;
    for (ssize_t size = ::getline(&line, &room, lines); size > 0; size = ::getline(&line, &room, lines)) {
        std::istringstream cells(std::string(line, static_cast<std::size_t>(size) - 1));
        std::string state, took;
        case_result r{};
        std::getline(cells, state, '\t');
        std::getline(cells, took, '\t');
        std::getline(cells, r.name, '\t');
        std::getline(cells, r.message);
        r.state = static_cast<case_result::kind>(std::atoi(state.c_str()));
        r.took = duration{std::atoll(took.c_str())};
        add(std::move(r));
    }
    std::free(line);
    std::fclose(lines);
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) <= 1;
    if (!ended_well || (WEXITSTATUS(status) == 1 && total.failed == 0))
        add({{}, 0, "all cases", case_result::failed, "the process whose clock was wrong ended early", {}});
    return total;
}

} // namespace holdfast::cli
