// The `holdfast` command. Exit codes: 0 good, 1 something is wrong, 2 the command line is wrong; `run` gives the
// application's own.
#include <array>
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
    return {plugins_command(), policies_command(), doctor_command(), run_command(), verify_command()};
}

void print_help(std::ostream& out) {
    out << "holdfast COMMAND [OPTION]...\n\n";
    for (const command& each : all_commands()) {
        std::string left =
            "  " + std::string(each.name) + (each.operand.empty() ? "" : " ") + std::string(each.operand);
        left.resize(22, ' ');
        out << left << each.summary << "\n";
    }
    out << "\n  --version           the version, its plugin ABI and its toolchain\n"
           "  --help              this text; after a command, that command's options\n";
}

bool asks_for_help(words given) {
    for (const std::string_view each : given) {
        if (each == "--") return false;
        if (each == "--help" || each == "-h") return true;
    }
    return false;
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
    std::vector<std::string_view> known = {"--version", "--help"};
    for (const command& each : all_commands()) {
        known.push_back(each.name);
        if (each.name != first) continue;
        if (!asks_for_help(given.subspan(1))) return each.run(each.parse(given.subspan(1)));
        std::cout << each.help();
        return 0;
    }
    throw usage_error("there is no " + std::string(first.starts_with('-') ? "option" : "command") + " \"" +
                      std::string(first) + "\"" + holdfast::did_you_mean(first, known));
}

} // namespace

int main(int count, char** values) {
    try {
        return run(words(values + 1, static_cast<std::size_t>(count > 0 ? count - 1 : 0)));
    } catch (const usage_error& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 2;
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
