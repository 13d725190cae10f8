// What reading and writing JSON agree on: which types have a form, and how a problem says where it is.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/describe/modifiers.hpp>

namespace holdfast::json {

// As deep as a text may be nested; the writer refuses what the reader would not take.
inline constexpr std::size_t max_depth = 64;

// The path grows from the inside out while calls return.
struct problem {
    std::string path;
    std::string what;

    bool say(std::string text) {
        what = std::move(text);
        return false;
    }
    bool in_member(std::string_view name) {
        const bool joined = path.empty() || path.front() == '[';
        path = std::string(name) + (joined ? "" : ".") + path;
        return false;
    }
    bool in_element(std::size_t index) {
        const bool joined = path.empty() || path.front() == '[';
        path = "[" + std::to_string(index) + "]" + (joined ? "" : ".") + path;
        return false;
    }
    std::string text() const { return path.empty() ? what : path + ": " + what; }
};

template <class T>
concept described = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
using members_of =
    boost::describe::describe_members<T, boost::describe::mod_any_access | boost::describe::mod_inherited>;

template <class T>
concept described_enum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;

template <class T>
concept whole_number =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;
template <class T>
concept real_number = std::same_as<T, float> || std::same_as<T, double>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = std::integral<Rep>;

template <class T>
inline constexpr bool is_system_time = false;
template <class Duration>
inline constexpr bool is_system_time<std::chrono::sys_time<Duration>> = true;

template <class T>
concept text_map = requires(T map, typename T::key_type key, typename T::mapped_type value) {
    requires std::same_as<typename T::key_type, std::string>;
    map.insert_or_assign(key, value);
};
template <class T>
concept sequence = !text_map<T> && requires(T many, typename T::value_type one) {
    many.begin();
    many.insert(many.end(), one);
};

template <class T>
inline constexpr bool has_no_form = false;

#define HOLDFAST_JSON_HAS_NO_FORM                                                                                      \
    "this type has no JSON form: describe it (BOOST_DESCRIBE_STRUCT, BOOST_DESCRIBE_ENUM), or specialise "             \
    "holdfast::codec for the whole payload"

} // namespace holdfast::json
