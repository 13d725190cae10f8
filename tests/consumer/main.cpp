// The smallest program that uses the package. Its argument is the plugin folder.
#include <holdfast/policy.hpp>

using namespace std::chrono_literals;

namespace {

constexpr auto greeting = holdfast::policy({.name = "greeting", .retry = {.max_attempts = 2, .delay = 1ms}});

} // namespace

int main() {
    static_cast<void>(greeting);
    return 0;
}
