#include "arguments.hpp"

#include <algorithm>

#include <holdfast/nearest.hpp>

namespace holdfast::cli {

namespace {

std::string line(std::string_view left, std::string_view right) {
    std::string text = "  " + std::string(left);
    text.resize(std::max<std::size_t>(text.size() + 2, 26), ' ');
    return text + std::string(right) + "\n";
}

} // namespace

std::optional<std::string> arguments::value(std::string_view name) const {
    const auto found = given_.find(name);
    if (found == given_.end()) return std::nullopt;
    return found->second.back();
}

std::vector<std::string> arguments::values(std::string_view name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? std::vector<std::string>{} : found->second;
}

arguments command::parse(std::span<const char* const> words) const {
    arguments parsed;
    bool options_end = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (options_end || !word.starts_with('-') || word == "-") {
            parsed.operands_.emplace_back(word);
            continue;
        }
        if (word == "--") {
            options_end = true;
            continue;
        }
        const std::string_view typed = word.substr(0, word.find('='));
        const auto known = std::ranges::find(options, typed, &option::name);
        if (known == options.end()) {
            std::vector<std::string_view> names = {"--help"};
            for (const option& each : options) names.push_back(each.name);
            throw usage_error("holdfast " + std::string(name) + " has no option \"" + std::string(typed) + "\"" +
                              did_you_mean(typed, names));
        }
        std::string text;
        if (typed.size() < word.size()) {
            if (known->operand.empty()) throw usage_error(std::string(typed) + " takes no value");
            text = word.substr(typed.size() + 1);
        } else if (!known->operand.empty()) {
            if (++i == words.size())
                throw usage_error(std::string(typed) + " needs a value: " + std::string(typed) + " " +
                                  std::string(known->operand));
            text = words[i];
        }
        parsed.given_[std::string(typed)].push_back(std::move(text));
    }
    const bool many = operand.ends_with("...");
    if (!many && parsed.operands_.size() > (operand.empty() ? 0U : 1U))
        throw usage_error("holdfast " + std::string(name) + " does not take \"" + parsed.operands_.back() + "\"");
    if (!operand.empty() && !operand.starts_with('[') && parsed.operands_.empty())
        throw usage_error("holdfast " + std::string(name) + " needs " + std::string(operand));
    return parsed;
}

std::string command::help() const {
    std::string text = "holdfast " + std::string(name);
    if (!operand.empty()) text += " " + std::string(operand);
    if (!options.empty()) text += " [OPTION]...";
    text += "\n\n" + std::string(summary) + "\n\n";
    for (const option& each : options)
        text += line(std::string(each.name) + (each.operand.empty() ? "" : " ") + std::string(each.operand), each.help);
    return text + line("--help", "this text");
}

} // namespace holdfast::cli
