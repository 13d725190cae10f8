#include <atomic>
#include <coroutine>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task.hpp>
#include <holdfast/task_scope.hpp>
#include <holdfast/when_all.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct counted {
    explicit counted(int& n) : alive(&n) { ++*alive; }
    counted(counted&& o) noexcept : alive(o.alive) { ++*alive; }
    counted(const counted&) = delete;
    ~counted() { --*alive; }
    int* alive;
};

task<int> give(int n) {
    co_return n;
}
task<void> nothing() {
    co_return;
}
task<int&> give_reference(int& n) {
    co_return n;
}
task<int> throw_int_task(const char* message) {
    throw std::runtime_error(message);
    co_return 0;
}
task<void> note(std::vector<int>& into, int n) {
    into.push_back(n);
    co_return;
}
task<void> note_after(runtime& on, duration d, std::vector<int>& into, int n) {
    co_await sleep_for(on, d);
    into.push_back(n);
}
task<void> throw_after(runtime& on, duration d, const char* message) {
    co_await sleep_for(on, d);
    throw std::runtime_error(message);
}
// Suspends for ever, and lets the test go on by hand.
struct by_hand {
    std::coroutine_handle<>& out;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { out = h; }
    void await_resume() const noexcept {}
};
task<void> wait_by_hand(std::coroutine_handle<>& out) {
    co_await by_hand{out};
}

} // namespace

TEST_CASE("task: starts when it is awaited, not before") {
    std::vector<int> seen;
    auto t = note(seen, 1);
    CHECK(seen.empty());
    sync_wait(std::move(t));
    CHECK(seen == std::vector{1});
}

TEST_CASE("task: gives values, references and things that only move") {
    CHECK(sync_wait(give(3)) == 3);
    int n = 1;
    static_assert(std::is_same_v<decltype(sync_wait(give_reference(n))), int&>);
    sync_wait(give_reference(n)) = 5;
    CHECK(n == 5);
    auto move_only = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    CHECK(*sync_wait(move_only()) == 7);
    auto awaits_reference = [](int& r) -> task<void> { co_await give_reference(r) = 6; };
    sync_wait(awaits_reference(n));
    CHECK(n == 6);
}

TEST_CASE("task: a value is converted, or made in place from braces") {
    auto text = []() -> task<std::string> { co_return "abc"; };
    auto pair = []() -> task<std::pair<int, std::string>> { co_return {1, "x"}; };
    CHECK(sync_wait(text()) == "abc");
    CHECK(sync_wait(pair()) == std::pair<int, std::string>(1, "x"));
}

TEST_CASE("task: an exception comes out of the await and can be caught there") {
    CHECK_THROWS_WITH(sync_wait(throw_int_task("boom")), "boom");
    auto catches = []() -> task<int> {
        try {
            co_return co_await throw_int_task("inner");
        } catch (const std::runtime_error&) {
            co_return -1;
        }
    };
    CHECK(sync_wait(catches()) == -1);
}

TEST_CASE("task: values and arguments are destroyed once, whether or not the task ran") {
    int alive = 0;
    auto pass = [](counted c) -> task<counted> { co_return std::move(c); };
    {
        auto never_awaited = pass(counted(alive));
        CHECK(alive == 1);
    }
    CHECK(alive == 0);
    {
        auto value = sync_wait(pass(counted(alive)));
        CHECK(alive == 1);
    }
    CHECK(alive == 0);
    {
        auto replaced = pass(counted(alive));
        replaced = pass(counted(alive));
        CHECK(alive == 1);
        auto moved = std::move(replaced);
        CHECK_FALSE(replaced);
        CHECK(moved);
    }
    CHECK(alive == 0);
}

TEST_CASE("task: a value that is made and then dropped for an exception is destroyed") {
    int alive = 0;
    struct throws_at_the_end {
        ~throws_at_the_end() noexcept(false) { throw std::runtime_error("late"); }
    };
    auto late = [](int& n) -> task<counted> {
        throws_at_the_end at_end;
        co_return counted(n);
    };
    CHECK_THROWS_WITH(sync_wait(late(alive)), "late");
    CHECK(alive == 0);
}

TEST_CASE("task: a million awaits of tasks that end at once do not grow the stack") {
    // A stack frame for each would be more than any stack holds.
    auto loop = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i < 1'000'000; ++i) sum += co_await give(1);
        co_return sum;
    };
    CHECK(sync_wait(loop()) == 1'000'000);
}

TEST_CASE("task: ten thousand tasks may wait for each other in a line") {
    struct line {
        static task<int> deep(int n) {
            if (n == 0) co_return 0;
            auto next = deep(n - 1);
            co_return 1 + co_await std::move(next);
        }
    };
    CHECK(sync_wait(line::deep(10'000)) == 10'000);
}

TEST_CASE("sync_wait: blocks until another thread ends the task") {
    std::coroutine_handle<> waiting;
    std::atomic<bool> suspended = false;
    auto t = [](std::coroutine_handle<>& out, std::atomic<bool>& flag) -> task<int> {
        struct awaiter {
            std::coroutine_handle<>& to;
            std::atomic<bool>& set;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) const noexcept {
                to = h;
                set = true;
            }
            void await_resume() const noexcept {}
        };
        co_await awaiter{out, flag};
        co_return 8;
    };
    std::jthread other([&] {
        while (!suspended) std::this_thread::yield();
        waiting.resume();
    });
    CHECK(sync_wait(t(waiting, suspended)) == 8);
}

TEST_CASE("when_all: gives every value in the order of its arguments") {
    int n = 4;
    auto [a, b, c, d] = sync_wait(when_all(give(1), nothing(), give_reference(n), give(3)));
    CHECK(a == 1);
    static_assert(std::is_same_v<decltype(b), std::monostate>);
    CHECK(&c == &n);
    CHECK(d == 3);
}

TEST_CASE("when_all: of nothing ends at once") {
    CHECK(sync_wait(when_all(std::vector<task<int>>{})).empty());
    sync_wait(when_all(std::vector<task<void>>{}));
    sync_wait(when_all());
}

TEST_CASE("when_all: runs tasks at the same time and waits for the last") {
    simulated_runtime rt;
    std::vector<int> order;
    const time_point start = rt.now();
    sync_wait(rt, when_all(note_after(rt, 3s, order, 3), note_after(rt, 1s, order, 1), note_after(rt, 2s, order, 2)));
    CHECK(order == std::vector{1, 2, 3});
    CHECK(rt.now() - start == 3s);
}

TEST_CASE("when_all: waits for all even after a failure, and rethrows the first in the order of its arguments") {
    simulated_runtime rt;
    std::vector<int> order;
    const time_point start = rt.now();
    CHECK_THROWS_WITH(sync_wait(rt, when_all(note_after(rt, 5s, order, 5), throw_after(rt, 2s, "listed first"),
                                             throw_after(rt, 1s, "thrown first"))),
                      "listed first");
    CHECK(order == std::vector{5});
    CHECK(rt.now() - start == 5s);
}

TEST_CASE("when_all: takes a list of tasks") {
    std::vector<task<std::unique_ptr<int>>> many;
    auto make = [](int n) -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(n); };
    for (int i = 0; i < 1'000; ++i) many.push_back(make(i));
    const auto values = sync_wait(when_all(std::move(many)));
    REQUIRE(values.size() == 1'000);
    for (int i = 0; i < 1'000; ++i) REQUIRE(*values[i] == i);
}

TEST_CASE("when_all: in a loop does not grow the stack") {
    auto loop = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i < 100'000; ++i) {
            auto both = when_all(give(1), give(2));
            const auto [a, b] = co_await std::move(both);
            sum += a + b;
        }
        co_return sum;
    };
    CHECK(sync_wait(loop()) == 300'000);
}

TEST_CASE("task_scope: starts at once, counts what runs, and join waits for all") {
    simulated_runtime rt;
    std::vector<int> order;
    task_scope scope;
    scope.spawn(note(order, 0));
    CHECK(order == std::vector{0});
    CHECK(scope.running() == 0);
    scope.spawn(note_after(rt, 2s, order, 2));
    scope.spawn(note_after(rt, 1s, order, 1));
    CHECK(scope.running() == 2);
    sync_wait(rt, scope.join());
    CHECK(order == std::vector{0, 1, 2});
    CHECK(scope.running() == 0);
}

TEST_CASE("task_scope: counts right while somebody waits for it") {
    std::coroutine_handle<> first, second;
    task_scope scope;
    scope.spawn(wait_by_hand(first));
    scope.spawn(wait_by_hand(second));
    auto joining = scope.join();
    parker joined;
    detail::unpark_at_end(joining, joined);
    CHECK(scope.running() == 2);
    first.resume();
    CHECK(scope.running() == 1);
    CHECK_FALSE(joined.ready());
    second.resume();
    CHECK(scope.running() == 0);
    CHECK(joined.ready());
}

TEST_CASE("task_scope: the first exception comes out of join, after all have ended") {
    simulated_runtime rt;
    std::vector<int> order;
    task_scope scope;
    scope.spawn(throw_after(rt, 2s, "second"));
    scope.spawn(throw_after(rt, 1s, "first"));
    scope.spawn(note_after(rt, 3s, order, 3));
    CHECK_THROWS_WITH(sync_wait(rt, scope.join()), "first");
    CHECK(order == std::vector{3});
}

TEST_CASE("task_scope: an empty one joins at once, and one that was never used needs no join") {
    task_scope joined, unused;
    sync_wait(joined.join());
    CHECK(unused.running() == 0);
}

TEST_CASE("task_scope: join waits for guests, who may spawn meanwhile, and nobody enters any more") {
    std::coroutine_handle<> spawned;
    task_scope scope;
    std::optional<task_scope::guest> guest = scope.try_enter();
    REQUIRE(guest);
    CHECK(scope.running() == 1);
    CHECK_FALSE(scope.joining());
    auto joining = scope.join();
    parker joined;
    detail::unpark_at_end(joining, joined);
    CHECK(scope.joining());
    CHECK_FALSE(scope.try_enter());
    scope.spawn(wait_by_hand(spawned));
    guest.reset();
    CHECK_FALSE(joined.ready());
    spawned.resume();
    CHECK(joined.ready());
    CHECK_FALSE(scope.try_enter());
}

TEST_CASE("task_scope: a task may spawn another") {
    simulated_runtime rt;
    std::vector<int> order;
    task_scope scope;
    auto parent = [](runtime& on, task_scope& in, std::vector<int>& into) -> task<void> {
        co_await sleep_for(on, 1s);
        in.spawn(note_after(on, 1s, into, 2));
        into.push_back(1);
    };
    scope.spawn(parent(rt, scope, order));
    sync_wait(rt, scope.join());
    CHECK(order == std::vector{1, 2});
}
