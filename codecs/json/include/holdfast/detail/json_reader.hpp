// JSON text as a value.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>

#include <holdfast/detail/json_kinds.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/timestamp.hpp>

namespace holdfast::json {

// The parsed text; small ones fit into it. No root: `why` says what is wrong and near which byte.
class document {
public:
    explicit document(std::string_view text) {
        boost::json::parse_options options;
        options.max_depth = max_depth;
        boost::json::parser parser({}, options, scratch_.data(), scratch_.size());
        parser.reset(&room_);
        boost::system::error_code wrong;
        const std::size_t read = parser.write(text.data(), text.size(), wrong);
        if (!wrong) root = parser.release();
        else if (text.empty()) why = "expected JSON, found nothing";
        else
            why = "not JSON near byte " + std::to_string(read) + " of " + std::to_string(text.size()) + ": " +
                  wrong.message();
    }
    document(const document&) = delete;
    document& operator=(const document&) = delete;

private:
    std::array<unsigned char, 2048> held_;
    std::array<unsigned char, 1024> scratch_;
    boost::json::monotonic_resource room_{held_.data(), held_.size()};

public:
    std::optional<boost::json::value> root;
    std::string why;
};

inline std::string found(const boost::json::value& value) {
    switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return value.get_bool() ? "true" : "false";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
    case boost::json::kind::double_: return "a number";
    case boost::json::kind::string: return "a string";
    case boost::json::kind::array: return "an array";
    case boost::json::kind::object: return "an object";
    }
    return "something else";
}
inline bool mismatch(problem& bad, std::string_view expected, const boost::json::value& value) {
    return bad.say("expected " + std::string(expected) + ", found " + found(value));
}
// At most 40 bytes of it, for a message.
inline std::string quoted(std::string_view text) {
    return "\"" + std::string(text.substr(0, 40)) + (text.size() > 40 ? "…\"" : "\"");
}
inline bool not_text(problem& bad, std::string_view expected, std::string_view text) {
    return bad.say("expected " + std::string(expected) + ", found " + quoted(text));
}

template <class T>
bool read(T& into, const boost::json::value& from, problem& bad);

template <class T>
bool read_whole(T& into, const boost::json::value& from, problem& bad) {
    if (!from.is_number()) return mismatch(bad, "a whole number", from);
    boost::system::error_code wrong;
    into = from.to_number<T>(wrong);
    if (!wrong) return true;
    return bad.say("expected a whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                   std::to_string(std::numeric_limits<T>::max()) + ", found " + boost::json::serialize(from));
}

template <class T>
bool read_real(T& into, const boost::json::value& from, problem& bad) {
    if (!from.is_number()) return mismatch(bad, "a number", from);
    const auto value = from.to_number<double>();
    if (value > std::numeric_limits<T>::max() || value < std::numeric_limits<T>::lowest())
        return bad.say("expected a number that fits, found one that is too large");
    into = static_cast<T>(value);
    return true;
}

template <class T>
bool read_name(T& into, std::string_view name, problem& bad) {
    bool known = false;
    std::string names;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto each) {
        names += (names.empty() ? "" : ", ") + std::string(each.name);
        if (name != each.name) return;
        into = each.value;
        known = true;
    });
    return known || not_text(bad, "one of " + names, name);
}

template <class T>
bool read_duration(T& into, std::string_view text, problem& bad) {
    const bool negative = text.starts_with('-');
    const auto read = text == "forever" ? std::optional(forever) : parse_duration(text.substr(negative ? 1 : 0));
    if (!read) return not_text(bad, "a duration such as \"1h30m\"", text);
    const duration value = negative ? -*read : *read;
    into = std::chrono::duration_cast<T>(value);
    if (value == forever || std::chrono::duration_cast<duration>(into) == value) return true;
    return not_text(bad, "a whole multiple of " + to_text(std::chrono::duration_cast<duration>(T{1})), text);
}

template <class T>
bool read_members(T& into, const boost::json::value& from, problem& bad) {
    const auto* object = from.if_object();
    if (object == nullptr) return mismatch(bad, "an object", from);
    bool good = true;
    boost::mp11::mp_for_each<members_of<T>>([&](auto member) {
        if (!good) return;
        const auto* value = object->if_contains(member.name);
        if (value == nullptr) return;
        good = read(into.*member.pointer, *value, bad);
        if (!good) bad.in_member(member.name);
    });
    return good;
}

template <class T>
bool read_map(T& into, const boost::json::value& from, problem& bad) {
    const auto* object = from.if_object();
    if (object == nullptr) return mismatch(bad, "an object", from);
    into.clear();
    for (const auto& each : *object) {
        typename T::mapped_type value{};
        const std::string_view key(each.key().data(), each.key().size());
        if (!read(value, each.value(), bad)) return bad.in_member(key);
        into.insert_or_assign(std::string(key), std::move(value));
    }
    return true;
}

template <class T>
bool read_elements(T& into, const boost::json::value& from, problem& bad) {
    const auto* array = from.if_array();
    if (array == nullptr) return mismatch(bad, "an array", from);
    if constexpr (is_array<T>) {
        if (array->size() != into.size())
            return bad.say("expected " + std::to_string(into.size()) + " elements, found " +
                           std::to_string(array->size()));
        for (std::size_t i = 0; i < into.size(); ++i)
            if (!read(into[i], (*array)[i], bad)) return bad.in_element(i);
    } else {
        into.clear();
        for (std::size_t i = 0; i < array->size(); ++i) {
            typename T::value_type one{};
            if (!read(one, (*array)[i], bad)) return bad.in_element(i);
            into.insert(into.end(), std::move(one));
        }
    }
    return true;
}

// What is kept as a JSON string.
template <class T>
bool read_text(T& into, std::string_view text, problem& bad) {
    if constexpr (described_enum<T>) {
        return read_name(into, text, bad);
    } else if constexpr (is_duration<T>) {
        return read_duration(into, text, bad);
    } else if constexpr (is_system_time<T>) {
        const auto time = parse_timestamp<T>(text);
        if (!time) return not_text(bad, "a time such as \"2026-11-16T06:01:07Z\"", text);
        into = *time;
        return true;
    } else if constexpr (std::is_same_v<T, identifier>) {
        const auto id = parse_identifier(text);
        if (!id) return not_text(bad, "an identifier of 26 characters", text);
        into = *id;
        return true;
    } else {
        into = text;
        return true;
    }
}

// `into` holds a default already; what the text does not mention keeps it. False: `bad` says what and where.
template <class T>
bool read(T& into, const boost::json::value& from, problem& bad) {
    if constexpr (std::is_same_v<T, bool>) {
        if (!from.is_bool()) return mismatch(bad, "true or false", from);
        into = from.get_bool();
        return true;
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, identifier> || described_enum<T> ||
                         is_duration<T> || is_system_time<T>) {
        const auto* text = from.if_string();
        if (text == nullptr) return mismatch(bad, "a string", from);
        return read_text(into, std::string_view(text->data(), text->size()), bad);
    } else if constexpr (described<T>) {
        return read_members(into, from, bad);
    } else if constexpr (std::is_enum_v<T>) {
        std::underlying_type_t<T> number{};
        if (!read_whole(number, from, bad)) return false;
        into = static_cast<T>(number);
        return true;
    } else if constexpr (whole_number<T>) {
        return read_whole(into, from, bad);
    } else if constexpr (real_number<T>) {
        return read_real(into, from, bad);
    } else if constexpr (is_optional<T>) {
        if (from.is_null()) {
            into.reset();
            return true;
        }
        return read(into.emplace(), from, bad);
    } else if constexpr (text_map<T>) {
        return read_map(into, from, bad);
    } else if constexpr (sequence<T> || is_array<T>) {
        return read_elements(into, from, bad);
    } else {
        static_assert(has_no_form<T>, HOLDFAST_JSON_HAS_NO_FORM);
    }
}

} // namespace holdfast::json
