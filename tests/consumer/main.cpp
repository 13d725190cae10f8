// The smallest program that uses a policy and a store. Its argument is the plugin folder; without one the environment
// says where plugins are.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/version.hpp>

using namespace std::chrono_literals;

namespace {

constexpr auto greeting = holdfast::policy({.name = "greeting", .retry = {.max_attempts = 2, .delay = 1ms}});

std::string greet(holdfast::attempt& a) {
    if (!a.last()) throw std::runtime_error("not yet");
    return "hello at attempt " + std::to_string(a.number());
}

// Once, however often it is called.
bool greet_once(holdfast::host& host) {
    return holdfast::sync_wait(host.runtime(), host.idempotency().try_claim("greeting")).value();
}

int run(const std::string& plugins) {
    auto host = holdfast::host::from_text(plugins + "[store]\nplugin = \"memory\"\n");
    host.add(greeting);
    host.start();
    const std::string said = greet_once(host) ? host.policies().execute(greeting, greet) : "nothing";
    std::printf("holdfast %s on %s: %s\n", holdfast::version_text, std::string(host.runtime().name()).c_str(),
                said.c_str());
    return said == "hello at attempt 3" && !greet_once(host) ? 0 : 1;
}

} // namespace

int main(int count, char** arguments) {
    try {
        return run(count == 2 ? "[plugins]\npath = [\"" + std::string(arguments[1]) + "\"]\n" : "");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
}
