#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/timer_queue.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

TEST_CASE("an empty timer queue has nothing due, ever") {
    timer_queue queue;
    timer stranger;
    CHECK(queue.empty());
    CHECK(queue.size() == 0);
    CHECK(queue.next_due() == never);
    CHECK(queue.pop() == nullptr);
    CHECK(queue.pop_due(never) == nullptr);
    CHECK_FALSE(queue.remove(stranger));
}

TEST_CASE("timers due at the same time come out in the order in which they were armed") {
    timer_queue queue;
    std::vector<timer> timers(100);
    for (timer& each : timers) queue.push(each, time_point{5s});
    for (timer& each : timers) CHECK(queue.pop() == &each);
}

TEST_CASE("a timer is not due a nanosecond early") {
    timer_queue queue;
    timer t;
    queue.push(t, time_point{5s});
    CHECK(queue.next_due() == time_point{5s});
    CHECK(queue.pop_due(time_point{5s - 1ns}) == nullptr);
    CHECK(queue.pop_due(time_point{5s}) == &t);
    CHECK(queue.empty());
}

TEST_CASE("a timer is removed once, and may be armed again") {
    timer_queue queue;
    timer t, other;
    queue.push(t, time_point{5s});
    queue.push(other, time_point{6s});
    CHECK(queue.remove(t));
    CHECK_FALSE(queue.remove(t));
    queue.push(t, time_point{7s});
    CHECK(queue.pop() == &other);
    CHECK(queue.pop() == &t);
    CHECK_FALSE(queue.remove(t));
}

TEST_CASE("a queue does not remove the timer of another queue") {
    timer_queue mine, theirs;
    timer t, u;
    mine.push(t, time_point{1s});
    theirs.push(u, time_point{1s});
    CHECK_FALSE(mine.remove(u));
    CHECK(mine.size() == 1);
    CHECK(theirs.remove(u));
}

TEST_CASE("a timer queue does what a sorted list does, over many random operations") {
    const std::uint64_t seed = GENERATE(1u, 2u, 3u);
    INFO("seed " << seed);
    random_series random(seed);
    timer_queue queue;
    std::vector<timer> timers(500);
    std::vector<timer*> idle;
    for (timer& each : timers) idle.push_back(&each);
    std::multimap<time_point, timer*> model; // equal keys keep their order of insertion
    const auto forget = [&](timer* t) {
        model.erase(std::ranges::find(model, t, &std::pair<const time_point, timer*>::second));
        idle.push_back(t);
    };
    for (int i = 0; i < 50'000; ++i) {
        const auto dice = random.next() % 10;
        if (dice < 5 && !idle.empty()) {
            const std::size_t which = random.next() % idle.size();
            timer* t = idle[which];
            idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(which));
            const time_point due{duration{static_cast<std::int64_t>(random.next() % 300)}};
            queue.push(*t, due);
            model.emplace(due, t);
        } else if (dice < 7) {
            timer& t = timers[random.next() % timers.size()];
            const bool armed =
                std::ranges::find(model, &t, &std::pair<const time_point, timer*>::second) != model.end();
            REQUIRE(queue.remove(t) == armed);
            if (armed) forget(&t);
        } else if (dice < 9) {
            const time_point now{duration{static_cast<std::int64_t>(random.next() % 300)}};
            timer* expected = !model.empty() && model.begin()->first <= now ? model.begin()->second : nullptr;
            REQUIRE(queue.pop_due(now) == expected);
            if (expected != nullptr) forget(expected);
        } else {
            timer* expected = model.empty() ? nullptr : model.begin()->second;
            REQUIRE(queue.pop() == expected);
            if (expected != nullptr) forget(expected);
        }
        REQUIRE(queue.size() == model.size());
        REQUIRE(queue.next_due() == (model.empty() ? never : model.begin()->first));
    }
}
