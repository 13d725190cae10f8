// The `holdfast` command. Exit codes: 0 good, 1 something is wrong, 2 the command line is wrong; `run` gives the
// application's own.
#include <algorithm>
#include <iostream>
#include <span>

#include <holdfast/error.hpp>
#include <holdfast/nearest.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "commands.hpp"

namespace {

using namespace holdfast::cli;

using words = std::span<const char* const>;

std::vector<command> all_commands() {
    std::vector<command> all = {plugins_command(), policies_command(), rules_command(),
                                doctor_command(),  run_command(),      verify_command()};
    for (auto family : {&jobs_commands, &queues_commands, &events_commands, &outbox_commands})
        for (command& each : family()) all.push_back(std::move(each));
    return all;
}

void print_line(std::ostream& out, const command& each) {
    std::string left = "  " + std::string(each.name) + (each.operand.empty() ? "" : " ") + std::string(each.operand);
    left.resize(std::max<std::size_t>(left.size() + 2, 25), ' ');
    out << left << each.summary << "\n";
}

void print_help(std::ostream& out) {
    out << "holdfast COMMAND [OPTION]...\n\n";
    for (const command& each : all_commands()) print_line(out, each);
    out << "\n  --version              the version, its plugin ABI and its toolchain\n"
           "  --help                 this text; after a command, that command's options\n";
}

// The commands whose first of two words is this one, if there are any.
std::vector<command> family(std::string_view word) {
    std::vector<command> found;
    for (command& each : all_commands())
        if (each.name.starts_with(std::string(word) + " ")) found.push_back(std::move(each));
    return found;
}

bool asks_for_help(words given) {
    for (const std::string_view each : given) {
        if (each == "--") return false;
        if (each == "--help" || each == "-h") return true;
    }
    return false;
}

int run_one(const command& chosen, words given) {
    if (!asks_for_help(given)) return chosen.run(chosen.parse(given));
    std::cout << chosen.help();
    return 0;
}

// "jobs list": the second word decides.
int run_of_family(const std::vector<command>& members, std::string_view first, words given) {
    const bool verb_given = !given.empty() && !std::string_view(given.front()).starts_with('-');
    if (!verb_given) {
        const bool helped = asks_for_help(given);
        std::ostream& out = helped ? std::cout : std::cerr;
        out << "holdfast " << first << " VERB [OPTION]...\n\n";
        for (const command& each : members) print_line(out, each);
        return helped ? 0 : 2;
    }
    const std::string full = std::string(first) + " " + given.front();
    std::vector<std::string_view> known;
    for (const command& each : members) {
        if (each.name == full) return run_one(each, given.subspan(1));
        known.push_back(each.name.substr(first.size() + 1));
    }
    throw usage_error("holdfast " + std::string(first) + " has no verb \"" + given.front() + "\"" +
                      holdfast::did_you_mean(given.front(), known));
}

int run(words given) {
    if (given.empty()) {
        print_help(std::cerr);
        return 2;
    }
    const std::string_view first = given.front();
    if (first == "--help" || first == "-h") {
        print_help(std::cout);
        return 0;
    }
    if (first == "--version") {
        std::cout << "holdfast " << holdfast::version_text << " (ABI " << holdfast::plugin_abi << ", "
                  << HOLDFAST_TOOLCHAIN << ")\n";
        return 0;
    }
    if (const auto members = family(first); !members.empty()) return run_of_family(members, first, given.subspan(1));
    std::vector<std::string_view> known = {"--version", "--help"};
    for (const command& each : all_commands()) {
        known.push_back(each.name.substr(0, each.name.find(' ')));
        if (each.name == first) return run_one(each, given.subspan(1));
    }
    throw usage_error("there is no " + std::string(first.starts_with('-') ? "option" : "command") + " \"" +
                      std::string(first) + "\"" + holdfast::did_you_mean(first, known));
}

} // namespace

int main(int count, char** values) {
    try {
        const int code = run(words(values + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0)));
        if (std::cout.flush()) return code;
        std::cerr << "error: the output could not be written\n";
        return code == 0 ? 1 : code;
    } catch (const usage_error& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 2;
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
