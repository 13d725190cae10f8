#include "rate_limiter.hpp"

#include <atomic>
#include <climits>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct lab {
    explicit lab(rate_options o) : limiter(o, now) {}
    bool take() { return limiter.try_take(now, retry_after); }
    int take_all() {
        int taken = 0;
        while (take()) ++taken;
        return taken;
    }
    time_point now{1h};
    duration retry_after{};
    rate_limiter limiter;
};

} // namespace

TEST_CASE("a rate limit lets exactly its burst through at once") {
    lab plain({.permits = 5, .per = 1s});
    CHECK(plain.take_all() == 5);
    lab small({.permits = 5, .per = 1s, .burst = 2});
    CHECK(small.take_all() == 2);
    lab large({.permits = 5, .per = 1s, .burst = 50});
    CHECK(large.take_all() == 50);
}

TEST_CASE("a rate limit says to the nanosecond when the next permit comes") {
    lab x({.permits = 3, .per = 1s});
    CHECK(x.take_all() == 3);
    CHECK(x.retry_after == 333'333'334ns);
    x.now += 333'333'333ns;
    CHECK_FALSE(x.take());
    CHECK(x.retry_after == 1ns);
    x.now += 1ns;
    CHECK(x.take());
    CHECK_FALSE(x.take());
    CHECK(x.retry_after == 333'333'333ns); // the second of three is due at 666'666'667
}

TEST_CASE("a refused call costs nothing") {
    lab x({.permits = 1, .per = 1s});
    CHECK(x.take());
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(x.take());
    x.now += 1s;
    CHECK(x.take());
}

TEST_CASE("permits are spread over the period, not given at its start") {
    lab x({.permits = 10, .per = 1s});
    CHECK(x.take_all() == 10);
    for (int i = 0; i < 10; ++i) {
        x.now += 100ms;
        CHECK(x.take_all() == 1);
    }
}

TEST_CASE("however long nothing is taken, no more than the burst is saved") {
    lab x({.permits = 10, .per = 1s, .burst = 4});
    x.now += 24h * 365;
    CHECK(x.take_all() == 4);
    x.now += 350ms;
    CHECK(x.take_all() == 3);
}

TEST_CASE("a rate of three a second does not drift over a million refills") {
    lab x({.permits = 3, .per = 1s});
    CHECK(x.take_all() == 3);
    const time_point start = x.now;
    for (std::int64_t n = 1; n <= 1'000'000; ++n) {
        if (x.take()) FAIL("a permit came early, at " << n);
        x.now += x.retry_after;
        if (!x.take()) FAIL("a permit came late, at " << n);
        if (x.now - start != duration{(n * 1'000'000'000 + 2) / 3}) FAIL("drifted at " << n);
    }
    CHECK(x.now - start == duration{333'333'333'333'334});
}

TEST_CASE("calls at a steady pace just above the rate get exactly the rate") {
    lab x({.permits = 7, .per = 1s, .burst = 1});
    int taken = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        taken += x.take();
        x.now += 1ms;
    }
    CHECK(taken == 7000); // a thousand seconds
}

TEST_CASE("the largest rates and the longest times do not overflow") {
    lab x({.permits = INT_MAX, .per = 24h * 365 * 100, .burst = 1});
    CHECK(x.take());
    CHECK_FALSE(x.take());
    const duration step = x.retry_after;
    CHECK(step == duration(24h * 365 * 100) / INT_MAX + 1ns);
    x.now += 24h * 365 * 99;
    CHECK(x.take());
    CHECK_FALSE(x.take());
    CHECK(x.retry_after > 0ns);
    CHECK(x.retry_after <= step);
    lab slow({.permits = 1, .per = forever});
    CHECK(slow.take());
    CHECK_FALSE(slow.take());
    CHECK(slow.retry_after == forever);
}

TEST_CASE("a clock that steps back neither gives nor takes permits") {
    lab x({.permits = 2, .per = 1s});
    CHECK(x.take_all() == 2);
    x.now -= 10s;
    CHECK_FALSE(x.take());
    CHECK(x.retry_after == 10'500ms);
    x.now += 10'500ms;
    CHECK(x.take());
}

TEST_CASE("threads that compete share exactly the burst") {
    rate_limiter limiter({.permits = 1000, .per = 1s}, time_point{1h});
    std::atomic<int> taken = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                duration retry_after{};
                for (int i = 0; i < 1000; ++i) taken += limiter.try_take(time_point{1h}, retry_after);
            });
    }
    CHECK(taken == 1000);
}
