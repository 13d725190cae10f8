// The smallest program that uses the package. Its argument is the plugin folder.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <holdfast/host.hpp>
#include <holdfast/version.hpp>

using namespace std::chrono_literals;

namespace {

constexpr auto greeting = holdfast::policy({.name = "greeting", .retry = {.max_attempts = 2, .delay = 1ms}});

std::string greet(holdfast::attempt& a) {
    if (!a.last()) throw std::runtime_error("not yet");
    return "hello at attempt " + std::to_string(a.number());
}

int run(const std::string& plugin_folder) {
    auto host = holdfast::host::from_text("[plugins]\npath = [\"" + plugin_folder + "\"]\n");
    host.add(greeting);
    host.start();
    const std::string said = host.policies().execute(greeting, greet);
    std::printf("holdfast %s on %s: %s\n", holdfast::version_text, std::string(host.runtime().name()).c_str(),
                said.c_str());
    return said == "hello at attempt 3" ? 0 : 1;
}

} // namespace

int main(int count, char** arguments) {
    try {
        return count == 2 ? run(arguments[1]) : 2;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
}
