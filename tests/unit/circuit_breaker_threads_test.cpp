// The breaker under many threads at once.
#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "circuit_breaker.hpp"

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using verdict = circuit_breaker::verdict;
using permit = circuit_breaker::permit;

namespace {

constexpr int thread_count = 4;

void on_threads(const std::function<void(int)>& what) {
    std::barrier start(thread_count);
    std::vector<std::jthread> threads;
    for (int i = 0; i < thread_count; ++i)
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            what(i);
        });
}

breaker_settings with(int failures, int probes) {
    return breaker_settings::from({.consecutive_failures = failures, .break_for = 5s, .probes = probes});
}

} // namespace

TEST_CASE("of a thousand concurrent callers exactly the given number of probes run, the rest are told when to return") {
    const int probes = GENERATE(1, 3, 7);
    for (int round = 0; round < 20; ++round) {
        circuit_breaker b({});
        const breaker_settings s = with(1, probes);
        const auto opened = [] { return time_point{1h}; };
        const auto later = [] { return time_point{1h} + 5s; };
        permit first;
        duration unused{};
        REQUIRE(b.enter(s, opened, first, unused));
        b.record(s, opened, first, verdict::failure);
        std::atomic<int> entered = 0, hinted = 0;
        on_threads([&](int) {
            for (int i = 0; i < 250; ++i) {
                permit p;
                duration retry_after{};
                if (b.enter(s, later, p, retry_after)) ++entered;
                else if (retry_after == 30s) ++hinted;
            }
        });
        REQUIRE(entered == probes);
        REQUIRE(hinted == 1000 - probes);
    }
}

TEST_CASE("failures on many threads open the circuit once") {
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> opened = 0;
        circuit_breaker b([&](const circuit_breaker::transition& t) { opened += t.to == circuit_state::open; });
        const breaker_settings s = with(100, 1);
        const auto clock = [] { return time_point{1h}; };
        std::atomic<int> entered = 0;
        on_threads([&](int) {
            for (int i = 0; i < 100; ++i) {
                permit p;
                duration retry_after{};
                if (!b.enter(s, clock, p, retry_after)) continue;
                ++entered;
                b.record(s, clock, p, verdict::failure);
            }
        });
        REQUIRE(opened == 1);
        REQUIRE(entered >= 100);
        REQUIRE(entered < 100 + thread_count);
    }
}

TEST_CASE("transitions are told once, in order, one at a time, whatever the threads do") {
    std::vector<circuit_breaker::transition> told;
    std::atomic<bool> telling = false;
    bool overlapped = false;
    std::atomic<std::int64_t> ticks = std::chrono::nanoseconds(1h).count();
    circuit_breaker b([&](const circuit_breaker::transition& t) {
        if (telling.exchange(true)) overlapped = true;
        told.push_back(t);
        std::this_thread::yield(); // room for another thread to come in between
        telling = false;
    });
    const breaker_settings s = with(2, 2);
    const auto clock = [&] { return time_point{duration{ticks.fetch_add(100'000'000)}}; };
    on_threads([&](int which) {
        random_series random(static_cast<std::uint64_t>(which) + 1);
        for (int i = 0; i < 5000; ++i) {
            permit p;
            duration retry_after{};
            if (random.next() % 500 == 0) b.isolate(clock());
            if (random.next() % 50 == 0) b.close(clock());
            if (!b.enter(s, clock, p, retry_after)) continue;
            b.record(s, clock, p, static_cast<verdict>(random.next() % 3));
        }
    });
    CHECK_FALSE(overlapped);
    REQUIRE(told.size() > 100);
    circuit_state before = circuit_state::closed;
    for (const auto& each : told) {
        INFO(to_text(before) << " -> " << to_text(each.to));
        switch (each.to) {
        case circuit_state::closed: REQUIRE(before != circuit_state::closed); break;
        case circuit_state::open:
            REQUIRE((before == circuit_state::closed || before == circuit_state::half_open));
            break;
        case circuit_state::half_open: REQUIRE(before == circuit_state::open); break;
        case circuit_state::isolated: REQUIRE(before != circuit_state::isolated); break;
        }
        before = each.to;
    }
    CHECK(b.state(time_point{}) == before); // the last one told is where it is
}

TEST_CASE("a window counts every record of every thread") {
    failure_window w;
    on_threads([&](int) {
        for (int i = 0; i < 20'000; ++i) w.record(i % 2 == 0, time_point{1h}, 10s);
    });
    CHECK(w.sum(time_point{1h}, 10s).total == 20'000 * thread_count);
    CHECK(w.sum(time_point{1h}, 10s).failures == 10'000 * thread_count);
}
