#include "retry_budget.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct lab {
    explicit lab(budget_options with) : o(with) {}
    void calls(int n) {
        for (int i = 0; i < n; ++i) budget.earn(o);
    }
    bool spend() { return budget.spend(o, now); }
    int spend_all() {
        int spent = 0;
        while (spend()) ++spent;
        return spent;
    }
    budget_options o;
    time_point now{1h};
    retry_budget budget;
};

} // namespace

TEST_CASE("calls earn their share of a retry, and no more") {
    lab x({.ratio = .2});
    CHECK_FALSE(x.spend());
    x.calls(4);
    CHECK_FALSE(x.spend());
    x.calls(1);
    CHECK(x.spend());
    CHECK_FALSE(x.spend());
    x.calls(50);
    CHECK(x.spend_all() == 10);
}

TEST_CASE("a share is not rounded down") {
    const double ratio = GENERATE(.001, .01, .07, .1, .29, .57, .58, 1.001, 1.01);
    INFO(ratio);
    lab x({.ratio = ratio});
    const int for_fifty = static_cast<int>(50 / ratio + .5);
    x.calls(for_fifty);
    const int spent = x.spend_all();
    CHECK(spent >= 49);
    CHECK(spent <= 50);
}

TEST_CASE("a ratio above one earns several retries a call") {
    lab x({.ratio = 3});
    x.calls(2);
    CHECK(x.spend_all() == 6);
}

TEST_CASE("a reserve starts with a second's worth, at least one") {
    lab slow({.reserve = .1});
    CHECK(slow.spend_all() == 1);
    lab quick({.reserve = 5});
    CHECK(quick.spend_all() == 5);
}

TEST_CASE("a reserve refills with time") {
    lab x({.reserve = 2});
    CHECK(x.spend_all() == 2);
    x.now += 499ms;
    CHECK_FALSE(x.spend());
    x.now += 1ms;
    CHECK(x.spend_all() == 1);
    x.now += 3s;
    CHECK(x.spend_all() == 6);
}

TEST_CASE("asking often does not slow the refill down") {
    const auto step = GENERATE(duration{100us}, duration{1ms}, duration{1900us}, duration{7777us});
    INFO(to_text(step));
    lab x({.reserve = 1});
    CHECK(x.spend_all() == 1);
    int spent = 0;
    const time_point end = x.now + 100s;
    while (x.now < end) {
        x.now += step;
        spent += x.spend();
    }
    CHECK(spent >= 99);
    CHECK(spent <= 101);
}

TEST_CASE("a small reserve gives its share to those who ask rarely, too") {
    lab x({.reserve = .05});
    CHECK(x.spend_all() == 1);
    for (int i = 0; i < 100; ++i) {
        x.now += 20s;
        CHECK(x.spend_all() == 1);
    }
    x.now += 24h;
    CHECK(x.spend_all() == 1);
}

TEST_CASE("a quiet time saves up at most ten seconds of reserve and a hundred retries") {
    lab x({.ratio = 1, .reserve = 2});
    CHECK(x.spend_all() == 2);
    x.calls(100'000);
    CHECK(x.spend_all() == 120);
    x.now += 24h;
    CHECK(x.spend_all() == 20);
}

TEST_CASE("a refused retry costs nothing") {
    lab x({.ratio = .5});
    x.calls(1);
    for (int i = 0; i < 100; ++i) CHECK_FALSE(x.spend());
    x.calls(1);
    CHECK(x.spend());
}

TEST_CASE("a clock that steps back gives no refill") {
    lab x({.reserve = 1});
    CHECK(x.spend());
    x.now -= 30min;
    CHECK_FALSE(x.spend());
}

TEST_CASE("threads that compete spend exactly what was earned") {
    retry_budget budget;
    const budget_options o{.ratio = .1};
    for (int i = 0; i < 500; ++i) budget.earn(o);
    std::atomic<int> spent = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                for (int i = 0; i < 200; ++i) {
                    spent += budget.spend(o, time_point{1h});
                    budget.earn(o);
                }
            });
    }
    while (budget.spend(o, time_point{1h})) ++spent;
    CHECK(spent == 50 + 80);
}
