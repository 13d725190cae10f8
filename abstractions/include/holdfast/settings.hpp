// A plugin's part of the host's configuration: text by key, with the place it was written at. The keys that a plugin
// asks for are the keys there are: the host refuses whatever else was written, by name and line.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/nearest.hpp>

namespace holdfast {

// One thread. Every getter throws failed(errc::configuration), saying where, what was found and what was expected.
class settings {
public:
    struct value {
        std::vector<std::string> items; // one, or the elements of a list
        std::string where;              // "desk.toml:7"
        bool list = false;
    };

    settings() = default;
    // `where` the section is written, and the configuration's folder.
    explicit settings(std::string section, std::string where = {}, std::filesystem::path folder = {})
        : section_(std::move(section)), where_(std::move(where)), folder_(std::move(folder)) {}

    void set(std::string key, value v) { values_[std::move(key)] = std::move(v); }
    void set(std::string key, std::string text, std::string where = {}) {
        set(std::move(key), value{{std::move(text)}, std::move(where), false});
    }

    bool has(std::string_view key) { return find(key) != nullptr; }
    std::string text(std::string_view key, std::string_view otherwise) {
        const value* v = find(key);
        return v == nullptr ? std::string(otherwise) : single(key, *v);
    }
    std::string required_text(std::string_view key) {
        const value* v = find(key);
        if (v == nullptr) refuse_missing(key);
        return single(key, *v);
    }
    // A relative one starts at the configuration's folder.
    std::filesystem::path required_path(std::string_view key) { return folder_ / required_text(key); }
    std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
        const value* v = find(key);
        if (v == nullptr) return otherwise;
        const std::string text = single(key, *v);
        std::int64_t number = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (problem != std::errc{} || end != text.data() + text.size() || number < least || number > most)
            refuse(key, *v, text, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        return number;
    }
    bool flag(std::string_view key, bool otherwise) {
        const value* v = find(key);
        if (v == nullptr) return otherwise;
        const std::string text = single(key, *v);
        if (text != "true" && text != "false") refuse(key, *v, text, "true or false");
        return text == "true";
    }
    duration time(std::string_view key, duration otherwise) {
        const value* v = find(key);
        if (v == nullptr) return otherwise;
        const std::string text = single(key, *v);
        const auto d = parse_duration(text);
        if (!d) refuse(key, *v, text, "a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", \"1d\"");
        return *d;
    }
    duration positive_time(std::string_view key, duration otherwise) {
        const duration d = time(key, otherwise);
        if (d <= duration::zero()) refuse(key, "a duration longer than 0");
        return d;
    }
    std::vector<std::string> list(std::string_view key) {
        const value* v = find(key);
        return v == nullptr ? std::vector<std::string>{} : v->items;
    }

    // A value that was written, and does not go with another one.
    [[noreturn]] void refuse(std::string_view key, const std::string& expected) {
        const value* v = find(key);
        if (v == nullptr) refuse_missing(key);
        refuse(key, *v, single(key, *v), expected);
    }

    // The first key that was written but never asked for, as a message; nothing when all is well.
    std::optional<error> first_unknown() const {
        for (const auto& [key, v] : values_) {
            if (asked_.contains(key)) continue;
            return error{errc::configuration,
                         prefix(v.where) + section_ + " has no key \"" + key + "\"" + did_you_mean(key, asked_),
                         {}};
        }
        return std::nullopt;
    }

    // The last thing that a getter threw.
    const std::optional<error>& refusal() const noexcept { return refusal_; }

private:
    const value* find(std::string_view key) {
        const auto found = values_.find(key);
        asked_.emplace(key);
        return found == values_.end() ? nullptr : &found->second;
    }
    std::string single(std::string_view key, const value& v) {
        if (v.list) refuse(prefix(v.where) + section_ + " " + std::string(key) + ": expected one value, found a list");
        return v.items.front();
    }
    [[noreturn]] void refuse(std::string_view key, const value& v, std::string_view found,
                             const std::string& expected) {
        refuse(prefix(v.where) + section_ + " " + std::string(key) + ": expected " + expected + ", found \"" +
               std::string(found) + "\"");
    }
    [[noreturn]] void refuse(std::string message) {
        refusal_ = error{errc::configuration, std::move(message), std::nullopt};
        throw failed(*refusal_);
    }
    // It may be there, mistyped.
    [[noreturn]] void refuse_missing(std::string_view key) {
        const std::array wanted = {key};
        const auto mistyped = std::ranges::find_if(values_, [&](const auto& each) {
            return !asked_.contains(each.first) && !did_you_mean(each.first, wanted).empty();
        });
        if (mistyped != values_.end())
            refuse(prefix(mistyped->second.where) + section_ + " has no key \"" + mistyped->first + "\"" +
                   did_you_mean(mistyped->first, wanted));
        refuse(prefix(where_) + section_ + " needs the key \"" + std::string(key) + "\"");
    }
    static std::string prefix(const std::string& where) { return where.empty() ? std::string() : where + ": "; }

    std::string section_;
    std::string where_;
    std::filesystem::path folder_;
    std::map<std::string, value, std::less<>> values_;
    std::set<std::string, std::less<>> asked_;
    std::optional<error> refusal_;
};

} // namespace holdfast
