#include <stdexcept>
#include <string>

#include <holdfast/sleep.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;

namespace {

constexpr policy
    usual({.name = "usual", .retry = {.max_attempts = 1, .delay = 0s}, .breaker = {.consecutive_failures = 9}});
constexpr policy
    picky({.name = "picky", .breaker = {.consecutive_failures = 9}, .fallback = fallback_when::rejected_only});
constexpr policy strict({.name = "strict", .fallback = fallback_when::never});

int throw_down() {
    throw std::runtime_error("down");
}
task<int> throw_later() {
    throw std::runtime_error("down");
    co_return 0;
}
task<int> nine_later(runtime& on) {
    co_await sleep_for(on, 1s);
    co_return 9;
}
task<void> nothing_later(bool& used) {
    used = true;
    co_return;
}
task<void> throw_nothing() {
    throw std::runtime_error("down");
    co_return;
}

} // namespace

TEST_CASE("a fallback answers in place of an execution that failed, and only then") {
    bench on(usual);
    CHECK(on.policies().execute(usual, throw_down, fallback([] { return 9; })) == 9);
    CHECK(on.policies().execute(usual, [] { return 1; }, fallback([] { return 9; })) == 1);
    const auto ended = on.policies().try_execute(usual, throw_down, fallback([] { return 9; }));
    CHECK(ended.succeeded());
    CHECK(ended.fell_back());
    CHECK(*ended == 9);
    CHECK(ended.stop_reason() == stop_reason::exhausted);
    CHECK(ended.attempt_count() == 2);
    CHECK(ended.attempts().size() == 2);
}

TEST_CASE("a fallback is told what happened") {
    bench on(usual);
    const auto ended = on.policies().try_execute(usual, throw_down, fallback([](const execution_report& why) {
                                                     CHECK(why.stop_reason() == stop_reason::exhausted);
                                                     CHECK(why.error().message == "down");
                                                     CHECK(why.attempts().size() == 2);
                                                     CHECK(why.policy_name() == "usual");
                                                     return why.attempt_count();
                                                 }));
    CHECK(*ended == 2);
}

TEST_CASE("a fallback may be a coroutine, or a function for a coroutine") {
    bench on(usual);
    CHECK(sync_wait(on.on, on.policies().execute(usual, throw_later, fallback([&] { return nine_later(on.on); }))) ==
          9);
    CHECK(on.elapsed() == 1s);
    CHECK(sync_wait(on.on, on.policies().execute(usual, throw_later, fallback([] { return 8; }))) == 8);
    bool used = false;
    sync_wait(on.on, on.policies().execute(usual, throw_nothing, fallback([&] { return nothing_later(used); })));
    CHECK(used);
    used = false;
    sync_wait(on.on, on.policies().execute(usual, throw_nothing, fallback([&] { used = true; })));
    CHECK(used);
    on.policies().execute(usual, [] { throw 1; }, fallback([&] { used = false; }));
    CHECK_FALSE(used);
}

TEST_CASE("cancellation never falls back") {
    bench on(usual);
    std::stop_source stop;
    stop.request_stop();
    bool used = false;
    const auto ended =
        on.policies().try_execute(usual, throw_down, fallback([&] { return used = true, 9; }), stop.get_token());
    CHECK(ended.stop_reason() == stop_reason::cancelled);
    const auto itself = on.policies().try_execute(
        usual, []() -> int { throw operation_cancelled(); }, fallback([&] { return used = true, 9; }));
    CHECK(itself.stop_reason() == stop_reason::cancelled);
    CHECK_FALSE(itself.succeeded());
    CHECK_FALSE(used);
}

TEST_CASE("a policy may keep fallbacks for rejections, or allow none") {
    bench on(picky, strict);
    CHECK_THROWS_WITH(on.policies().execute(picky, throw_down, fallback([] { return 9; })), "down");
    on.policies().bind(picky).isolate_circuit();
    CHECK(on.policies().execute(picky, throw_down, fallback([] { return 9; })) == 9);
    CHECK_THROWS_WITH(on.policies().execute(strict, throw_down, fallback([] { return 9; })), "down");
}

TEST_CASE("a fallback takes the place of a returned failure") {
    bench on(usual);
    const auto lost = []() -> result<int> { return fail(errc::unavailable, "gone"); };
    CHECK(on.policies().execute(usual, lost, fallback([] { return result<int>(9); })) == 9);
    const auto ended = on.policies().try_execute(usual, lost, fallback([] { return 9; }));
    CHECK(ended.fell_back());
    CHECK(*ended == 9);
}

TEST_CASE("a fallback that fails too keeps what it was to make good") {
    bench on(usual);
    const auto no_cache = fallback([]() -> int { throw std::logic_error("no cache"); });
    const auto ended = on.policies().try_execute(usual, throw_down, no_cache);
    CHECK_FALSE(ended.succeeded());
    CHECK_FALSE(ended.fell_back());
    CHECK_FALSE(ended.has_value());
    CHECK(detail::exception_message(ended.exception()) == "no cache");
    CHECK(detail::exception_message(ended.cause()) == "down");
    CHECK(ended.stop_reason() == stop_reason::exhausted);
    try {
        on.policies().execute(usual, throw_down, no_cache);
        FAIL("nothing was thrown");
    } catch (const fallback_failed& e) {
        CHECK(std::string(e.what()) == "the fallback failed: no cache; it stood in for: down");
        CHECK(detail::exception_as<std::runtime_error>(e.cause()) != nullptr);
    }
    CHECK_THROWS_AS(sync_wait(on.on, on.policies().execute(usual, throw_later, no_cache)), fallback_failed);
}

TEST_CASE("a failing fallback for a refusal keeps the refusal as its cause, also where a result is returned") {
    bench on(usual);
    on.policies().bind(usual).isolate_circuit();
    const auto ended =
        on.policies().try_execute(usual, throw_down, fallback([]() -> int { throw std::logic_error("no cache"); }));
    CHECK_FALSE(ended.refusal());
    CHECK(detail::exception_message(ended.cause()) == "policy \"usual\": the circuit is open");
    CHECK_THROWS_AS(on.policies().execute(
                        usual, []() -> result<int> { return 1; },
                        fallback([]() -> result<int> { throw std::logic_error("no cache"); })),
                    fallback_failed);
}

TEST_CASE("the slot of the concurrency limit is free again while the fallback runs") {
    bench on;
    CHECK(on.made.catalog().add({.name = "p", .concurrency = {.limit = 1}}));
    const auto bound = on.policies().bind("p");
    CHECK(bound.execute(throw_down, fallback([&] { return bound.execute([] { return 5; }); })) == 5);
}
