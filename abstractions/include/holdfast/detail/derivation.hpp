// Which exception type derives from which, for types that are known only by what they can do. Told by the language
// itself: a pointer to the one is thrown, and caught or not as a pointer to the other. A microsecond; for registration.
#pragma once

#include <type_traits>
#include <typeinfo>

#include <holdfast/failure.hpp>

namespace holdfast::detail {

// An exception type as a value.
struct catchable {
    const std::type_info* type;
    bool (*catches)(const failure&);           // without a throw, where the library allows it
    void (*throw_pointer)();                   // a null one
    bool (*catches_pointer)(void (*throw_)()); // that of the same or of a derived type
};

template <class E>
inline constexpr catchable catchable_as{
    &typeid(E),
    [](const failure& f) { return f.as<E>() != nullptr; },
    [] { throw static_cast<const E*>(nullptr); },
    [](void (*throw_)()) {
        try {
            throw_();
        } catch (const E*) {
            return true;
        } catch (...) {
            return false;
        }
        return false;
    },
};

inline bool is_or_derives_from(const catchable& derived, const catchable& base) {
    return *derived.type == *base.type || base.catches_pointer(derived.throw_pointer);
}

inline bool derives_from(const catchable& derived, const catchable& base) {
    return *derived.type != *base.type && base.catches_pointer(derived.throw_pointer);
}

} // namespace holdfast::detail
