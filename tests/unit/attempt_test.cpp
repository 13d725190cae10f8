#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>

#include <holdfast/attempt.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// Hands the timer that was armed to the test, which then plays the runtime's thread.
class held_timer_runtime final : public runtime {
public:
    std::string_view name() const noexcept override { return "held timer"; }
    time_point now() const noexcept override { return time_point{1h}; }
    bool post(work&) noexcept override { return false; }
    bool post_blocking(work&) noexcept override { return false; }
    bool arm(timer& t, time_point) noexcept override {
        armed.store(&t);
        return true;
    }
    bool cancel(timer&) noexcept override { return armed.exchange(nullptr) != nullptr; }
    void stop() noexcept override {}
    bool stopped() const noexcept override { return false; }

    // Runs the timer, unless it was cancelled first.
    void fire() {
        if (timer* t = armed.exchange(nullptr)) t->run(*t, wake::due);
    }

    std::atomic<timer*> armed = nullptr;
};

} // namespace

TEST_CASE("the token of an attempt without a deadline is the caller's own") {
    simulated_runtime on;
    std::stop_source caller;
    const std::stop_token token = caller.get_token();
    const overdue_count overdue = std::make_shared<std::atomic<int>>(0);
    attempt a(on, "p", token, 1, 3, never, overdue);
    CHECK(a.stop_token() == token);
    CHECK(on.timers() == 0);
    CHECK_FALSE(a.stop_requested());
    caller.request_stop();
    CHECK(a.stop_requested());
}

TEST_CASE("the token of an attempt with a deadline fires with its caller, too") {
    simulated_runtime on;
    std::stop_source caller;
    const std::stop_token token = caller.get_token();
    const overdue_count overdue = std::make_shared<std::atomic<int>>(0);
    attempt a(on, "p", token, 1, 3, on.now() + 1s, overdue);
    const std::stop_token mine = a.stop_token();
    CHECK_FALSE(mine.stop_requested());
    caller.request_stop();
    CHECK(mine.stop_requested());
    CHECK(*overdue == 0);
}

TEST_CASE("a token outlives its attempt, and fires no more") {
    simulated_runtime on;
    const std::stop_token nobody;
    const overdue_count overdue = std::make_shared<std::atomic<int>>(0);
    std::stop_token mine;
    {
        attempt a(on, "p", nobody, 1, 1, on.now() + 1s, overdue);
        mine = a.stop_token();
    }
    on.advance(1h);
    CHECK_FALSE(mine.stop_requested());
}

TEST_CASE("an attempt on a stopped runtime is told to stop at once") {
    simulated_runtime on;
    on.stop();
    const std::stop_token nobody;
    const overdue_count overdue = std::make_shared<std::atomic<int>>(0);
    attempt a(on, "p", nobody, 1, 1, on.now() + 1s, overdue);
    CHECK(a.stop_token().stop_requested());
    CHECK_THROWS_AS(a.block_for(1s), operation_cancelled);
}

TEST_CASE("a sleep within an attempt ends with the attempt's time") {
    simulated_runtime on;
    const std::stop_token nobody;
    const overdue_count overdue = std::make_shared<std::atomic<int>>(0);
    const time_point start = on.now();
    attempt a(on, "p", nobody, 1, 1, start + 1s, overdue);
    a.block_for(400ms);
    CHECK(on.now() == start + 400ms);
    CHECK_THROWS_AS(a.block_for(1h), operation_cancelled);
    CHECK(on.now() == start + 1s);
    CHECK_THROWS_AS(sync_wait(on, a.sleep_for(1ms)), operation_cancelled);
}

TEST_CASE("an attempt that ends while its timer fires is not counted as overdue for ever") {
    held_timer_runtime on;
    const std::stop_token nobody;
    const overdue_count overdue = std::make_shared<std::atomic<int>>(0);
    std::atomic<int> round = 0, fired = 0;
    constexpr int rounds = 20'000;
    std::jthread timer_thread([&] {
        for (int i = 1; i <= rounds; ++i) {
            while (round.load() < i) std::this_thread::yield();
            on.fire();
            fired.store(i);
        }
    });
    for (int i = 1; i <= rounds; ++i) {
        {
            attempt a(on, "p", nobody, 1, 1, time_point{2h}, overdue);
            (void)a.stop_token();
            round.store(i);
            for (volatile int spin = i % 200; spin > 0; spin = spin - 1) {
            }
        }
        while (fired.load() < i) std::this_thread::yield();
        if (overdue->load() != 0) break;
    }
    round.store(rounds);
    CHECK(overdue->load() == 0);
}
