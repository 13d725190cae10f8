#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/when_all.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct noted : timer {
    noted(std::vector<int>& to, int number) : log(to), id(number) {
        run = [](work& w, wake reason) noexcept {
            auto& self = static_cast<noted&>(static_cast<timer&>(w));
            self.why = reason;
            self.log.push_back(self.id);
        };
    }
    std::vector<int>& log;
    int id;
    wake why = wake::due;
};

task<void> nap(runtime& on, duration d, std::vector<duration>& woke, time_point start) {
    auto sleeping = sleep_for(on, d);
    co_await sleeping;
    woke.push_back(on.now() - start);
}

std::vector<int> order_with(std::uint64_t seed) {
    simulated_runtime r(seed);
    std::vector<int> log;
    std::vector<noted> all;
    all.reserve(50);
    for (int i = 0; i < 50; ++i) REQUIRE(r.post(all.emplace_back(log, i)));
    r.run_ready();
    return log;
}

} // namespace

TEST_CASE("hours pass at once when somebody waits for them on a simulated runtime") {
    simulated_runtime r;
    const auto start = r.now();
    CHECK(block_for(r, 1000h) == sleep_end::due);
    CHECK(r.now() - start == 1000h);
}

TEST_CASE("a simulated sleeper wakes at its own time and in the order of times") {
    simulated_runtime r;
    std::vector<duration> woke;
    sync_wait(r, when_all(nap(r, 3h, woke, r.now()), nap(r, 1ms, woke, r.now()), nap(r, 0ms, woke, r.now())));
    CHECK(woke == std::vector<duration>{0ms, 1ms, 3h});
}

TEST_CASE("advance moves time exactly and runs what falls due on the way") {
    simulated_runtime r;
    std::vector<int> log;
    noted early(log, 1), late(log, 2);
    const auto start = r.now();
    REQUIRE(r.arm(early, start + 1s));
    REQUIRE(r.arm(late, start + 3s));
    r.advance(2s);
    CHECK(r.now() - start == 2s);
    CHECK(log == std::vector{1});
    CHECK(r.timers() == 1);
    r.advance(1s);
    CHECK(log == std::vector{1, 2});
    CHECK(r.timers() == 0);
}

TEST_CASE("run_ready runs what is runnable now without moving time, run_until_idle runs everything") {
    simulated_runtime r;
    std::vector<int> log;
    noted posted(log, 1), due(log, 2), later(log, 3), endless(log, 4);
    const auto start = r.now();
    REQUIRE(r.arm(endless, never));
    REQUIRE(r.arm(later, start + 1h));
    REQUIRE(r.arm(due, start));
    REQUIRE(r.post(posted));
    r.run_ready();
    CHECK(log == std::vector{1, 2});
    CHECK(r.now() == start);
    r.run_until_idle();
    CHECK(log == std::vector{1, 2, 3});
    CHECK(r.now() - start == 1h);
    CHECK(r.cancel(endless));
}

TEST_CASE("seed zero keeps the order of posts, and any other seed repeats its own") {
    std::vector<int> in_order;
    for (int i = 0; i < 50; ++i) in_order.push_back(i);
    CHECK(order_with(0) == in_order);
    CHECK(order_with(7) == order_with(7));
    CHECK(order_with(7) != order_with(8));
    CHECK(order_with(7) != in_order);
    auto sorted = order_with(7);
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == in_order);
}

TEST_CASE("a shuffling simulated runtime keeps the order of timers that are due at the same time") {
    simulated_runtime r(3);
    std::vector<int> log;
    std::vector<noted> all;
    all.reserve(20);
    for (int i = 0; i < 20; ++i) REQUIRE(r.arm(all.emplace_back(log, i), r.now() + 1s));
    r.run_until_idle();
    CHECK(std::is_sorted(log.begin(), log.end()));
}

TEST_CASE("stopping a simulated runtime runs what was posted, and timers as stopped") {
    std::vector<int> log;
    noted posted(log, 1), armed(log, 2), refused(log, 3);
    {
        simulated_runtime r;
        REQUIRE(r.arm(armed, never));
        REQUIRE(r.post(posted));
    }
    CHECK(log == std::vector{1, 2});
    CHECK(posted.why == wake::due);
    CHECK(armed.why == wake::stopped);
}

TEST_CASE("blocking work on a simulated runtime may wait, and other work runs meanwhile") {
    simulated_runtime r;
    const auto start = r.now();
    const auto slow = [&] { return block_for(r, 2h) == sleep_end::due ? r.now() - start : duration{}; };
    const auto quick = [&] { return block_for(r, 1h) == sleep_end::due ? r.now() - start : duration{}; };
    const auto [a, b] = sync_wait(r, when_all(run_blocking(r, slow), run_blocking(r, quick)));
    CHECK(a == 2h);
    CHECK(b == 1h);
}

TEST_CASE("a million posts keep a simulated runtime small and in order") {
    simulated_runtime r;
    struct again : work {
        runtime* on = nullptr;
        int left = 1'000'000;
    } w;
    w.on = &r;
    w.run = [](work& self, wake) noexcept {
        auto& me = static_cast<again&>(self);
        if (--me.left > 0) (void)me.on->post(me);
    };
    REQUIRE(r.post(w));
    r.run_until_idle();
    CHECK(w.left == 0);
}

TEST_CASE("waiting for what cannot happen aborts with a message") {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        simulated_runtime r;
        parker p;
        r.wait(p);
        _exit(0);
    }
    close(ends[1]);
    std::string message;
    char buffer[256];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
        message.append(buffer, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK_THAT(message, Catch::Matchers::ContainsSubstring("waits for something that cannot happen"));
}
