// expect: match on a class type, by its plain name
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.on<int>().retry();
}
