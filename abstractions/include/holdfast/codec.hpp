// How a value of the application's becomes a payload's bytes and comes back. <holdfast/json.hpp> has one for described
// structs; specialise it for others:
//
//   template <> struct holdfast::codec<my_proto> {
//       static constexpr std::string_view content_type = "application/protobuf";
//       static std::string encode(const my_proto& value); // or a result<std::string>, where a value may be refused
//       static holdfast::result<my_proto> decode(std::string_view body); // or (body, int version): see decode()
//   };
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>

namespace holdfast {

template <class T>
struct codec; // none for this type: include <holdfast/json.hpp> and describe it, or specialise this

template <class T>
concept decodable_by_version = requires(std::string_view body, int version) {
    { codec<T>::decode(body, version) } -> std::same_as<result<T>>;
};

template <class T>
concept encodable = requires(const T& value, std::string_view body) {
    { codec<T>::content_type } -> std::convertible_to<std::string_view>;
    { codec<T>::encode(value) } -> std::convertible_to<result<std::string>>;
    requires decodable_by_version<T> || requires {
        { codec<T>::decode(body) } -> std::same_as<result<T>>;
    };
};

// Bytes that were written as that version of T: the `.version` of its options at the time.
template <encodable T>
result<T> decode(std::string_view body, int version) {
    if constexpr (decodable_by_version<T>) return codec<T>::decode(body, version);
    else return codec<T>::decode(body);
}

} // namespace holdfast
