// A first policy: declared, run around a function that fails twice, and what became of it.
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include <holdfast/host.hpp>

using namespace std::chrono_literals;

// [policy]
inline constexpr auto booking = holdfast::policy({
    .name = "booking",
    .retry = {.max_attempts = 4, .delay = 50ms, .backoff = holdfast::backoff::exponential, .max_delay = 2s},
    .timeout = 1s,
}); // a wrong one does not compile, and the compiler says why
// [/policy]

namespace {

// Stands for a service on the other side of a network.
std::string ask_for_a_slot(int attempt) {
    if (attempt < 3) throw std::runtime_error("503 busy");
    return "tuesday 9:30";
}

int book() {
    // [execute]
    auto host = holdfast::host::from_text(""); // no configuration: the Asio runtime
    host.add(booking);
    host.start();

    auto outcome =
        host.policies().try_execute(booking, [](holdfast::attempt& a) { return ask_for_a_slot(a.number()); });

    for (const auto& each : outcome.attempts()) {
        std::cout << "attempt " << each.number << ": " << to_text(each.end);
        if (each.delay_after) std::cout << ", waited " << holdfast::to_short_text(*each.delay_after);
        std::cout << "\n";
    }
    std::cout << to_text(outcome.stop_reason()) << ": " << (outcome ? *outcome : outcome.error().message) << "\n";
    // [/execute]
    return outcome ? 0 : 1;
}

} // namespace

int main() {
    try {
        return book();
    } catch (const std::exception& e) { // no plugin, say: one line that tells what was looked for and where
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
