// An application as a plugin: `holdfast run price_feed.toml` loads it, gives it a runtime and its policies, passes
// SIGTERM on as a stop token and SIGHUP as a reload, and ends with its exit code.
#include <memory>
#include <stdexcept>
#include <string>

#include <holdfast/application.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/sleep.hpp>

using namespace std::chrono_literals;

namespace {

// [application]
inline constexpr auto feed_policy = holdfast::policy({
    .name = "price-feed",
    .retry = {.max_attempts = 3, .delay = 5ms},
    .timeout = 2s,
});

class price_feed final : public holdfast::application {
public:
    explicit price_feed(holdfast::settings& settings)
        : every_(settings.time("every", 1s)), prices_(settings.integer("prices", 0, 0, 1'000'000)) {}

    void declare(holdfast::declarations& to) override { to.add(feed_policy); }

    holdfast::task<int> run(holdfast::services& with, std::stop_token stop) override {
        int fetched = 0;
        while (prices_ == 0 || fetched < prices_) {
            const int next = ++fetched;
            const std::string line = co_await with.policies().execute(
                feed_policy, [this, next](holdfast::attempt& a) { return fetch(next, a); }, stop);
            with.log().info(line);
            if (co_await holdfast::sleep_for(with.runtime(), every_, stop) != holdfast::sleep_end::due) break;
        }
        with.log().info(std::to_string(fetched) + " prices, " + std::to_string(attempts_) + " attempts");
        co_return 0;
    }
    // [/application]

private:
    // Stands for a server that stumbles over the third price.
    holdfast::task<std::string> fetch(int n, holdfast::attempt& a) {
        ++attempts_;
        co_await a.sleep_for(1ms);
        if (n == 3 && a.number() == 1) throw std::runtime_error("connection reset");
        co_return "price " + std::to_string(100 + n) + " at attempt " + std::to_string(a.number());
    }

    const holdfast::duration every_;
    const std::int64_t prices_;
    int attempts_ = 0;
};

std::unique_ptr<holdfast::application> make_price_feed(holdfast::plugin_context& context) {
    return std::make_unique<price_feed>(context.settings());
}

} // namespace

HOLDFAST_APPLICATION_PLUGIN("price_feed", "1.0.0", "prices, one after the other", &make_price_feed)
