// What a benchmark is told on its command line, and its --help.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

class options {
public:
    // summary: what is measured, in a few lines.
    explicit options(std::string summary) : summary_(std::move(summary)) {}

    // operand: "FOLDER"; empty for a switch, which gets an empty text.
    options& add(std::string_view name, std::string_view operand, std::string_view help,
                 std::function<void(std::string_view)> take) {
        known_.push_back({name, operand, help, std::move(take)});
        return *this;
    }

    // Nothing: go on. Otherwise the program ends with that code: its help was asked for, or a word was wrong. Where there is
    // a `rest`, words that are not known go there.
    std::optional<int> read(int argc, char** argv, std::vector<char*>* rest = nullptr) const {
        for (int i = 1; i < argc; ++i) {
            const std::string_view word = argv[i];
            if (word == "--help") return print_help(argv[0], rest != nullptr), 0;
            const auto found = std::ranges::find(known_, word, &option::name);
            if (found == known_.end()) {
                if (rest == nullptr) return wrong("there is no option \"" + std::string(word) + "\"");
                rest->push_back(argv[i]);
                continue;
            }
            if (!found->operand.empty() && i + 1 == argc)
                return wrong(std::string(word) + " needs a value: " + std::string(word) + " " +
                             std::string(found->operand));
            found->take(found->operand.empty() ? std::string_view() : argv[++i]);
        }
        return std::nullopt;
    }

    // Exit code 2.
    static int wrong(const std::string& what) {
        std::fprintf(stderr, "error: %s; --help lists the options\n", what.c_str());
        return 2;
    }

private:
    struct option {
        std::string_view name;
        std::string_view operand;
        std::string_view help;
        std::function<void(std::string_view)> take;
    };

    void print_help(const char* program, bool others) const {
        const std::string_view path = program;
        const std::string name(path.substr(path.rfind('/') + 1));
        std::printf("%s [OPTION]...\n\n%s\n\n", name.c_str(), summary_.c_str());
        const auto line = [](const std::string& left, std::string_view right) {
            std::printf("  %-22s %.*s\n", left.c_str(), static_cast<int>(right.size()), right.data());
        };
        for (const option& each : known_)
            line(std::string(each.name) + (each.operand.empty() ? "" : " ") + std::string(each.operand), each.help);
        if (others) line("--benchmark_...", "as Google Benchmark takes them, --benchmark_filter=REGEX for some");
        line("--help", "this text");
    }

    std::string summary_;
    std::vector<option> known_;
};

} // namespace bench
