// Asks an exception_ptr for its type without a throw where the standard library lets us; elsewhere by rethrowing.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <typeinfo>

#if defined(__GLIBCXX__)
#include <cstdlib>
#include <cxxabi.h>
#endif

namespace holdfast::detail {

// The thrown object as E, or null when it is not one (or derived from one). Valid as long as `thrown` is alive.
template <class E>
const E* exception_as(const std::exception_ptr& thrown) noexcept {
    static_assert(std::is_class_v<E> && !std::is_const_v<E>, "match on a class type, by its plain name");
    if (!thrown) return nullptr;
#if defined(__GLIBCXX__)
    void* object = nullptr;
    static_assert(sizeof(thrown) == sizeof(object));
    __builtin_memcpy(&object, &thrown, sizeof(object));
    const std::type_info* type = thrown.__cxa_exception_type();
    if (type == nullptr || !typeid(E).__do_catch(type, &object, 1)) return nullptr;
    return static_cast<const E*>(object);
#else
    try {
        std::rethrow_exception(thrown);
    } catch (const E& e) {
        return &e;
    } catch (...) {
        return nullptr;
    }
#endif
}

// A type's name for people, as well as the library can tell it.
inline std::string type_name(const std::type_info& type) {
#if defined(__GLIBCXX__)
    int status = 0;
    char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    std::string text = status == 0 && name != nullptr ? name : type.name();
    std::free(name);
    return text;
#else
    return type.name();
#endif
}

// The type's name for people, "unknown" when the library cannot tell.
inline std::string exception_type_name(const std::exception_ptr& thrown) {
#if defined(__GLIBCXX__)
    if (!thrown) return "none";
    const std::type_info* type = thrown.__cxa_exception_type();
    return type == nullptr ? "unknown" : type_name(*type);
#else
    return exception_as<std::exception>(thrown) ? "std::exception" : "unknown";
#endif
}

inline std::string exception_message(const std::exception_ptr& thrown) {
    if (!thrown) return {};
    if (const auto* e = exception_as<std::exception>(thrown)) return e->what();
    return "an exception of type " + exception_type_name(thrown);
}

} // namespace holdfast::detail
