// expect: expects an rvalue for object argument
#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    auto chain = rules.on<std::runtime_error>();
    chain.retry();
}
