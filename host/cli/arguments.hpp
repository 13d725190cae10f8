// What was typed after the command's name, checked against what the command knows.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// The command line is wrong: one line, exit code 2.
class usage_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct option {
    std::string_view name;    // "--config"
    std::string_view operand; // "FILE"; empty for a switch
    std::string_view help;
};

class arguments {
public:
    bool has(std::string_view name) const { return given_.contains(name); }
    std::optional<std::string> value(std::string_view name) const; // the last one given
    std::vector<std::string> values(std::string_view name) const;
    const std::vector<std::string>& operands() const { return operands_; }

private:
    friend struct command;
    std::map<std::string, std::vector<std::string>, std::less<>> given_;
    std::vector<std::string> operands_;
};

struct command {
    std::string_view name;    // one word, or two: "jobs list"
    std::string_view operand; // "PLUGIN.so"; "ID..." for several, "[ID]..." for any number; empty when it takes none
    std::string_view summary;
    std::vector<option> options;
    int (*run)(const arguments&); // gives the exit code; may throw failed or usage_error

    // Throws usage_error.
    arguments parse(std::span<const char* const> words) const;
    std::string help() const;
};

} // namespace holdfast::cli
