// A value as JSON text.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include <boost/mp11/algorithm.hpp>

#include <holdfast/detail/json_kinds.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/store_limits.hpp>
#include <holdfast/timestamp.hpp>

namespace holdfast::json {

// False: `bad` says what cannot be written and where, and `text` is of no use.
class writer {
public:
    std::string text;
    problem bad;

    bool write(bool value) {
        text += value ? "true" : "false";
        return true;
    }
    bool write(const std::string& value) { return write_text(value); }
    bool write(const identifier& value) { return write_text(to_text(value)); }

    template <class T>
    bool write(const T& value) {
        if constexpr (described<T>) return write_members(value);
        else if constexpr (described_enum<T>) return write_name(value);
        else if constexpr (std::is_enum_v<T>) return write(static_cast<std::underlying_type_t<T>>(value));
        else if constexpr (whole_number<T>) return write_number(value);
        else if constexpr (real_number<T>)
            return std::isfinite(value) ? write_number(value)
                                        : bad.say("JSON has no form for a number that is not finite");
        else if constexpr (is_optional<T>) return value ? write(*value) : write_null();
        else if constexpr (is_duration<T>) return write_duration(value);
        else if constexpr (is_system_time<T>) return write_time(value);
        else if constexpr (text_map<T>) return write_map(value);
        else if constexpr (sequence<T> || is_array<T>) return write_elements(value);
        else static_assert(has_no_form<T>, HOLDFAST_JSON_HAS_NO_FORM);
    }

private:
    bool write_null() {
        text += "null";
        return true;
    }
    template <class T>
    bool write_number(T value) {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
        text.append(digits, end);
        return true;
    }

    bool write_text(std::string_view value) {
        if (!store_limits::is_utf8(value)) return bad.say("expected UTF-8 text, found bytes that are not");
        text += '"';
        for (const char c : value) write_character(c);
        text += '"';
        return true;
    }
    void write_character(char c) {
        constexpr std::string_view digits = "0123456789abcdef";
        switch (c) {
        case '"': text += "\\\""; return;
        case '\\': text += "\\\\"; return;
        case '\n': text += "\\n"; return;
        case '\r': text += "\\r"; return;
        case '\t': text += "\\t"; return;
        default: break;
        }
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20) text += c;
        else (text += "\\u00") += {digits[byte >> 4], digits[byte & 15]};
    }

    template <class T>
    bool write_name(T value) {
        std::string_view name;
        boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto each) {
            if (each.value == value) name = each.name;
        });
        if (!name.empty()) return write_text(name);
        return bad.say("no enumerator has the value " + std::to_string(static_cast<std::underlying_type_t<T>>(value)));
    }

    template <class T>
    bool write_duration(T value) {
        constexpr auto most = std::chrono::duration_cast<T>(duration::max());
        if constexpr (most < T::max())
            if (value > most || value < -most) return bad.say("the duration is longer than 292 years");
        return write_text(to_text(std::chrono::duration_cast<duration>(value)));
    }
    template <class T>
    bool write_time(T value) {
        const std::string written = to_text(value);
        if (!parse_timestamp<T>(written)) return bad.say("a time must be in the years 0 to 9999");
        return write_text(written);
    }

    bool deeper() {
        if (++depth_ <= max_depth) return true;
        return bad.say("nested deeper than " + std::to_string(max_depth) + " levels");
    }
    void next(bool& first) {
        if (!first) text += ',';
        first = false;
    }

    template <class T>
    bool write_members(const T& value) {
        if (!deeper()) return false;
        text += '{';
        bool first = true;
        bool good = true;
        boost::mp11::mp_for_each<members_of<T>>([&](auto member) {
            if (!good) return;
            next(first);
            good = write_text(member.name) && (text += ':', write(value.*member.pointer));
            if (!good) bad.in_member(member.name);
        });
        text += '}';
        --depth_;
        return good;
    }
    template <class T>
    bool write_map(const T& values) {
        if (!deeper()) return false;
        text += '{';
        bool first = true;
        for (const auto& [key, value] : values) {
            next(first);
            if (!write_text(key)) return bad.say("expected UTF-8 keys, found bytes that are not");
            text += ':';
            if (!write(value)) return bad.in_member(key);
        }
        text += '}';
        --depth_;
        return true;
    }
    template <class T>
    bool write_elements(const T& values) {
        if (!deeper()) return false;
        text += '[';
        bool first = true;
        std::size_t index = 0;
        for (const typename T::value_type& each : values) {
            next(first);
            if (!write(each)) return bad.in_element(index);
            ++index;
        }
        text += ']';
        --depth_;
        return true;
    }

    std::size_t depth_ = 0;
};

} // namespace holdfast::json
