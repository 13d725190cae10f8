#include "crash_report.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <execinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/detail/cut_text.hpp>
#include <holdfast/detail/exception_type.hpp>

#include "symbol_table.hpp"

namespace holdfast::detail {

namespace {

constexpr int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int deepest = 48;
constexpr std::size_t longest_message = 2048; // a quarter of what is kept of an error: the stack has the rest

std::atomic<int> report_file = -1;

void say(const char* text) noexcept {
    [[maybe_unused]] const auto written = ::write(report_file, text, std::strlen(text));
}

void say_address(const void* at) noexcept {
    char text[] = " at address 0x0000000000000000\n";
    auto bits = reinterpret_cast<std::uintptr_t>(at);
    for (char* digit = text + sizeof text - 3; *digit != 'x'; --digit, bits >>= 4)
        *digit = "0123456789abcdef"[bits & 15];
    say(text);
}

// From whoever was interrupted on: not this function, the signal handler, or what calls that.
[[gnu::noinline]] void say_stack() noexcept {
    constexpr int ours = 3;
    void* frames[deepest];
    const int depth = ::backtrace(frames, deepest);
    if (depth > ours) ::backtrace_symbols_fd(frames + ours, depth - ours, report_file);
}

// Async-signal-safe, as far as a stack can be read at all. The signal then does what it would have done.
extern "C" void holdfast_on_crash(int signal, siginfo_t* what, void*) {
    static std::atomic<pid_t> reporter = 0;
    pid_t nobody = 0;
    const pid_t me = ::gettid();
    if (reporter.compare_exchange_strong(nobody, me)) {
        const char* name = ::sigabbrev_np(signal);
        say("SIG");
        say(name != nullptr ? name : "?");
        if (signal == SIGABRT) say("\n");
        else say_address(what->si_addr);
        say_stack();
    } else if (nobody != me) {
        for (;;) ::pause(); // another thread is at it, and ends this one too
    }
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

[[noreturn]] void on_terminate() noexcept {
    if (const auto thrown = std::current_exception()) {
        try {
            std::string text = "nobody caught " + exception_type_name(thrown) + ": " + exception_message(thrown);
            text = cut_text(std::move(text), longest_message) + "\n";
            say(text.c_str());
        } catch (...) { // out of memory: the stack tells
        }
    }
    std::abort();
}

// A line is "file(function+0x1a) [0x…]", or "file(+0x12c8) [0x…]" when the file does not export the function.
std::string readable(const std::string& line) {
    const auto open = line.find('(');
    const auto plus = line.find('+', open);
    const auto close = line.find(')', plus);
    if (close == line.npos) return line;
    const std::string name = line.substr(open + 1, plus - open - 1);
    const std::string file = line.substr(0, open);
    std::string text = name.empty() ? symbol_at(file, std::strtoull(line.c_str() + plus + 1, nullptr, 16))
                                    : demangled(name) + line.substr(plus, close - plus);
    if (text.empty()) return line;
    return text + " in " + file.substr(file.rfind('/') + 1);
}

} // namespace

void report_crashes_to(int file) {
    report_file = file;
    void* first[1];
    ::backtrace(first, 1); // loads what it needs now, for in a signal handler it must not
    struct sigaction ours{};
    ours.sa_sigaction = &holdfast_on_crash;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigemptyset(&ours.sa_mask);
    for (const int each : fatal) ::sigaction(each, &ours, nullptr);
    std::set_terminate(&on_terminate);
}

std::string ending_in_words(int wait_status) {
    if (WIFEXITED(wait_status)) return "exit code " + std::to_string(WEXITSTATUS(wait_status));
    const char* name = ::sigabbrev_np(WTERMSIG(wait_status));
    return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(wait_status));
}

std::string readable_stack(const std::string& report) {
    std::string text;
    for (std::size_t at = 0; at < report.size();) {
        const auto end = std::min(report.find('\n', at), report.size());
        text += (text.empty() ? "" : "\n") + readable(report.substr(at, end - at));
        at = end + 1;
    }
    return text;
}

} // namespace holdfast::detail
