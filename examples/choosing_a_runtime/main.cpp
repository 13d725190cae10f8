// One program, any runtime: the configuration file names it, and nothing here changes.
#include <atomic>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/when_all.hpp>

using namespace std::chrono_literals;

namespace {

inline constexpr auto quote = holdfast::policy({
    .name = "quote",
    .retry = {.max_attempts = 1, .delay = 5ms},
    .timeout = 10s,
});

struct market {
    std::atomic<int> asked = 0;

    // Answers after a while; for every fifth share not before the third attempt.
    holdfast::task<int> price(int share, holdfast::attempt& a) {
        ++asked;
        co_await a.sleep_for(2ms);
        if (share % 5 == 0 && a.number() < 3) throw std::runtime_error("no price yet");
        co_return 100 + share;
    }
};

// [ask]
holdfast::task<int> ask(holdfast::policies& policies, market& at, int share) {
    co_return co_await policies.execute(quote, [&at, share](holdfast::attempt& a) { return at.price(share, a); });
}
// [/ask]

int run(const char* configuration) {
    // [choose]
    auto host = holdfast::host::from_file(configuration);
    host.add(quote);
    host.start();
    // [/choose]

    market at;
    const auto began = host.runtime().now();
    std::vector<holdfast::task<int>> asking;
    for (int share = 1; share <= 20; ++share) asking.push_back(ask(host.policies(), at, share));
    const auto prices = sync_wait(host.runtime(), when_all(std::move(asking)));

    std::cout << "on " << host.runtime().name() << ": " << prices.size() << " quotes, " << at.asked << " attempts, in "
              << holdfast::to_short_text(host.runtime().now() - began) << "\n";
    return 0;
}

} // namespace

int main(int count, char** arguments) {
    try {
        return run(count > 1 ? arguments[1] : "asio.toml");
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
