#include "environment.hpp"

#include <algorithm>
#include <cstdlib>

namespace holdfast::detail {

namespace {

constexpr std::string_view opening = "${";

bool is_name(std::string_view name) {
    constexpr auto may_begin = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
    return !name.empty() && may_begin(name.front()) &&
           std::ranges::all_of(name, [&](char c) { return may_begin(c) || (c >= '0' && c <= '9'); });
}

// What stands between the braces.
result<std::string> value_of(std::string_view inside, const environment& from) {
    const auto split = inside.find(":-");
    const std::string name(inside.substr(0, split));
    if (!is_name(name))
        return fail(errc::configuration, "\"${" + std::string(inside) +
                                             "}\" names no environment variable; write ${NAME} or ${NAME:-otherwise}, "
                                             "or $${ for the characters themselves");
    const auto found = from(name);
    if (split != inside.npos) return found && !found->empty() ? *found : std::string(inside.substr(split + 2));
    if (found) return *found;
    return fail(errc::configuration, "the environment variable " + name + " is not set; set it, or write ${" + name +
                                         ":-otherwise} for a value without it");
}

} // namespace

std::optional<std::string> environment_variable(const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

result<std::string> fill_in(std::string_view text, const environment& from) {
    std::string filled;
    for (;;) {
        const auto begin = text.find(opening);
        if (begin == text.npos) return filled.append(text);
        filled.append(text.substr(0, begin));
        text.remove_prefix(begin + opening.size());
        if (filled.ends_with('$')) {
            filled.append("{");
            continue;
        }
        const auto end = text.find('}');
        if (end == text.npos) return fail(errc::configuration, "\"${" + std::string(text) + "\" has no closing brace");
        auto value = value_of(text.substr(0, end), from);
        if (!value) return value;
        filled += *value;
        text.remove_prefix(end + 1);
    }
}

} // namespace holdfast::detail
