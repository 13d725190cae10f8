// How a result that an operation gives is kept: a reference as a pointer would be, void as something empty.
#pragma once

#include <functional>
#include <variant>

namespace holdfast::detail {

template <class T>
struct stored_as {
    using type = T;
};
template <>
struct stored_as<void> {
    using type = std::monostate;
};
template <class T>
struct stored_as<T&> {
    using type = std::reference_wrapper<T>;
};

template <class T>
using stored = typename stored_as<T>::type;

} // namespace holdfast::detail
