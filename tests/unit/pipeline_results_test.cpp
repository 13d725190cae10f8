// What operations may return, and how refusals come back.
#include <expected>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;

namespace {

constexpr policy plain({.name = "plain", .retry = {.max_attempts = 2, .delay = 0s}});
constexpr policy full({.name = "full",
                       .retry = {.max_attempts = 2, .delay = 0s},
                       .timeout = 1s,
                       .breaker = {.consecutive_failures = 100},
                       .concurrency = {.limit = 1}});

struct counted {
    static inline int alive = 0;
    int value;
    explicit counted(int v) : value(v) { ++alive; }
    counted(counted&& other) noexcept : value(other.value) { ++alive; }
    counted(const counted& other) : value(other.value) { ++alive; }
    counted& operator=(counted&&) = delete;
    ~counted() { --alive; }
};

int shared_number = 5;
int& number() {
    return shared_number;
}
const std::string& throws_first() {
    static int calls = 0;
    static const std::string text = "kept";
    if (++calls == 1) throw std::runtime_error("first");
    return text;
}
task<int&> number_later() {
    co_return shared_number;
}
task<std::unique_ptr<int>> pointer_later() {
    co_return std::make_unique<int>(4);
}
task<void> nothing_later() {
    co_return;
}
task<result<int>> five_later() {
    co_return 5;
}
task<int> throws_before_it_runs(int& calls) {
    ++calls;
    throw std::runtime_error("no task was made");
}

bool too_small(const failure& f) {
    const int* value = f.value<int>();
    return value != nullptr && *value < 3;
}
bool is_bad(const failure& f) {
    return f.value<counted>() != nullptr && f.value<counted>()->value < 3;
}

} // namespace

TEST_CASE("an operation may return nothing") {
    bench on(plain, full);
    for (const char* name : {"plain", "full"}) {
        int calls = 0;
        on.policies().execute(name, [&] {
            if (++calls < 3) throw 1;
        });
        CHECK(calls == 3);
        CHECK(on.policies().try_execute(name, [] {}).has_value());
        sync_wait(on.on, on.policies().execute(name, nothing_later));
        CHECK(sync_wait(on.on, on.policies().try_execute(name, nothing_later)).succeeded());
    }
}

TEST_CASE("an operation may return what can only be moved") {
    bench on(plain, full);
    for (const char* name : {"plain", "full"}) {
        CHECK(*on.policies().execute(name, [] { return std::make_unique<int>(3); }) == 3);
        CHECK(*on.policies().try_execute(name, [] { return std::make_unique<int>(3); }).value() == 3);
        CHECK(*sync_wait(on.on, on.policies().execute(name, pointer_later)) == 4);
    }
}

TEST_CASE("an operation may return a reference, and it is the same object") {
    bench on(plain, full);
    for (const char* name : {"plain", "full"}) {
        int& seen = on.policies().execute(name, number);
        CHECK(&seen == &shared_number);
        const auto ended = on.policies().try_execute(name, number);
        CHECK(&(*ended).get() == &shared_number);
        int& later = sync_wait(on.on, on.policies().execute(name, number_later));
        CHECK(&later == &shared_number);
        int other = 6;
        int& instead =
            on.policies().execute(name, []() -> int& { throw 1; }, fallback([&]() -> int& { return other; }));
        CHECK(&instead == &other);
    }
    CHECK(on.policies().execute(plain, throws_first) == "kept");
}

TEST_CASE("rules see through a reference") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p", .retry = {.max_attempts = 5, .delay = 0s}, .rules = {retry_when(too_small)}}));
    int value = 0;
    CHECK(on.policies().execute("p", [&]() -> int& { return ++value; }) == 3);
    result<int> bad = fail(errc::unavailable, "gone");
    const auto ended = on.policies().try_execute("p", [&]() -> result<int>& { return bad; });
    CHECK(ended.stop_reason() == stop_reason::rule);
}

TEST_CASE("the function may be move-only, a function pointer, const, or kept elsewhere") {
    bench on(plain);
    CHECK(on.policies().execute(plain, [owned = std::make_unique<int>(2)] { return *owned; }) == 2);
    const auto fixed = [](attempt&) { return 3; };
    CHECK(on.policies().execute(plain, fixed) == 3);
    auto counting = [calls = 0]() mutable { return ++calls; };
    CHECK(on.policies().execute(plain, counting) == 1);
    CHECK(on.policies().execute(plain, counting) == 2); // the same function, not a copy
    CHECK(sync_wait(on.on, on.policies().execute(
                               plain, [owned = std::make_unique<int>(2)] { return pointer_later(); })) != nullptr);
}

TEST_CASE("a call keeps its function until it is awaited, and may become a task first") {
    bench on(plain);
    task<int> later = [&] {
        auto held = std::make_shared<int>(7);
        return on.policies()
            .execute(plain, [held] { return [](std::shared_ptr<int> h) -> task<int> { co_return *h; }(held); })
            .as_task();
    }();
    CHECK(sync_wait(on.on, std::move(later)) == 7);
    task<outcome<int>> tried = on.policies().try_execute(plain, [] { return []() -> task<int> { co_return 8; }(); });
    CHECK(*sync_wait(on.on, std::move(tried)) == 8);
}

TEST_CASE("code that returns another policy's call returns a task, and both policies count") {
    bench on(plain, full);
    int calls = 0;
    const auto count = [](int& n) -> task<int> {
        if (++n < 9) throw std::runtime_error("no");
        co_return n;
    };
    const auto inner = [&] { return on.policies().execute(full, [&] { return count(calls); }); };
    CHECK(sync_wait(on.on, on.policies().execute(plain, inner)) == 9);
    calls = 3;
    CHECK(sync_wait(on.on, on.policies().execute(plain, [&] { return count(calls); }, fallback(inner))) == 9);
}

TEST_CASE("a function that throws before it makes its task is an attempt like any other") {
    bench on(plain, full);
    for (const char* name : {"plain", "full"}) {
        int calls = 0;
        auto make = [&]() -> task<int> {
            if (calls >= 0) return throws_before_it_runs(calls);
            return {};
        };
        const auto ended = sync_wait(on.on, on.policies().try_execute(name, make));
        CHECK(calls == 3);
        CHECK(ended.error().message == "no task was made");
    }
}

TEST_CASE("a value that is tried again is destroyed before the next attempt, the last one is kept") {
    bench on;
    CHECK(
        on.made.catalog().add({.name = "p", .retry = {.max_attempts = 3, .delay = 0s}, .rules = {retry_when(is_bad)}}));
    {
        int calls = 0;
        const auto ended = on.policies().try_execute("p", [&] {
            CHECK(counted::alive == 0);
            return counted(++calls);
        });
        CHECK(ended->value == 3);
        CHECK(counted::alive == 1);
    }
    CHECK(counted::alive == 0);
}

TEST_CASE("a refusal comes back as a value where the operation returns a result") {
    bench on(full);
    const auto bound = on.policies().bind(full);
    bound.isolate_circuit();
    const result<int> refused = bound.execute([]() -> result<int> { return 5; });
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::circuit_open);
    CHECK(refused.error().message == "policy \"full\": the circuit is open");
    const result<int> later = sync_wait(on.on, bound.execute(five_later));
    REQUIRE_FALSE(later);
    CHECK(later.error().code == errc::circuit_open);
    CHECK_THROWS_AS(bound.execute([] { return 5; }), failed);
    bound.close_circuit();
    CHECK(bound.execute([]() -> result<int> { return 5; }) == 5);
    std::stop_source stop;
    stop.request_stop();
    CHECK(bound.execute([]() -> result<void> { return {}; }, stop.get_token()).error().code == errc::cancelled);
    CHECK(bound
              .execute([](attempt& a) -> result<int> {
                  a.block_for(1h);
                  return 5;
              })
              .error()
              .code == errc::timed_out);
}

TEST_CASE("an exception still leaves an operation that returns a result as an exception") {
    bench on(full);
    CHECK_THROWS_AS(on.policies().execute(full, []() -> result<int> { throw std::logic_error("bug"); }),
                    std::logic_error);
}

TEST_CASE("a returned failure is given back as it is, in both forms") {
    bench on(plain);
    int calls = 0;
    const auto fail_it = [&]() -> result<int> { return ++calls, fail(errc::not_found, "no such mail"); };
    CHECK(on.policies().execute(plain, fail_it).error().message == "no such mail");
    CHECK(calls == 1);
    const auto ended = on.policies().try_execute(plain, fail_it);
    CHECK_FALSE(ended);
    REQUIRE(ended.has_value());
    CHECK((*ended).error().code == errc::not_found);
    CHECK(ended.stop_reason() == stop_reason::rule);
    CHECK(ended.attempts()[0].code == make_error_code(errc::not_found));
    CHECK(ended.attempts()[0].end == attempt_end::failed);
}

TEST_CASE("a returned failure that brings a hint is tried again after it") {
    bench on;
    CHECK(on.made.catalog().add(
        {.name = "p", .retry = {.max_attempts = 1, .delay = 1s}, .rules = {retry_on(errc::rate_limited)}}));
    int calls = 0;
    const auto ended = on.policies().execute("p", [&]() -> result<int> {
        if (++calls == 1) return std::unexpected(error{errc::rate_limited, "slow", 17s});
        return calls;
    });
    CHECK(ended == 2);
    CHECK(on.elapsed() == 17s);
}
