// expect: match on a class type, by its plain name
#include <holdfast/rule.hpp>

constexpr holdfast::rule bad = holdfast::retry_on<int>();
