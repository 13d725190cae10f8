// expect: no matching member function for call to 'on'
#include <stdexcept>

#include <holdfast/exception_policy.hpp>

void declare(holdfast::exception_policy& rules) {
    rules.on<std::runtime_error>([](const std::logic_error&) { return true; }).retry();
}
