// What comes next for a call that has failed.
#include "catch.hpp"
#include "exception_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::action;
using test::bad_address;
using test::decide_on;
using test::life_of;
using test::reason;
using test::smtp_error;
using test::table_of;
using list = std::vector<std::string>;

TEST_CASE("a dead letter says why") {
    exception_policy rules;
    rules.on<bad_address>().dead_letter();
    rules.on<smtp_error>().retry(1);
    const auto table = table_of(rules);
    CHECK(decide_on(table, bad_address()).why == reason::rule);
    CHECK(decide_on(table, 42).why == reason::no_rule);
    CHECK(decide_on(table, non_retryable_error("x")).why == reason::not_retryable);
    CHECK(decide_on(table, operation_cancelled()).why == reason::not_retryable);
    CHECK(test::decide_on_returned(table, result<void>(fail(errc::cancelled, "x"))).why == reason::not_retryable);
    CHECK(decide_on(table, smtp_error(), {.calls = 2, .retries = {0, 1}}).why == reason::spent);
    CHECK(decide_on(table, smtp_error(), {.calls = 100}).why == reason::total);
    for (const auto& each :
         {decide_on(table, bad_address()), decide_on(table, 42), decide_on(table, operation_cancelled())})
        CHECK(each.what == action::dead_letter);
}

TEST_CASE("discard is a decision of its own") {
    exception_policy rules;
    rules.on<bad_address>().discard();
    const auto next = decide_on(table_of(rules), bad_address());
    CHECK(next.what == action::discard);
    CHECK(next.rule == 0);
}

TEST_CASE("each rule counts its own retries, so different errors do not add up") {
    exception_policy rules;
    rules.on<bad_address>().retry({1s, 2s});
    rules.on<std::logic_error>().retry({3s, 4s});
    const auto table = table_of(rules);
    exception_history so_far;
    const auto next = [&](auto thrown) {
        const auto decided = decide_on(table, thrown, so_far);
        so_far.add(decided);
        return std::string(to_text(decided.what)) + " " + to_text(decided.after);
    };
    CHECK(next(bad_address()) == "retry 1s");
    CHECK(next(std::logic_error("b")) == "retry 3s");
    CHECK(next(bad_address()) == "retry 2s");
    CHECK(next(std::logic_error("b")) == "retry 4s");
    CHECK(so_far.calls == 5);
    CHECK(next(bad_address()) == "dead letter 0");
}

TEST_CASE("redeliveries are counted for the message, whatever it failed with") {
    exception_policy rules;
    rules.on<bad_address>().redeliver({1s, 2s});
    rules.on<std::logic_error>().redeliver({3s, 4s});
    const auto table = table_of(rules);
    CHECK(decide_on(table, std::logic_error("b"), {.redeliveries = 1, .calls = 2}).after == 4s);
    CHECK(decide_on(table, bad_address(), {.redeliveries = 2, .calls = 3}).why == reason::spent);
}

TEST_CASE("the total of attempts stops retries times redeliveries") {
    exception_policy rules;
    rules.default_().retry(9, 0s).then_redeliver(9, 0s);
    CHECK(life_of(table_of(rules), 42).size() == 100); // 10 * 10 calls, which is just allowed
    rules.max_total_attempts(25);
    const auto life = life_of(table_of(rules), 42);
    CHECK(life.size() == 25); // 24 times again, then the end
    CHECK(std::ranges::count(life, "redeliver 0") == 2);
    CHECK(life.back() == "dead letter");
}

TEST_CASE("the total does not touch what ends at once, and spent is told before it") {
    exception_policy rules;
    rules.on<bad_address>().discard();
    rules.default_().retry(1);
    rules.max_total_attempts(2);
    const auto table = table_of(rules);
    CHECK(decide_on(table, bad_address(), {.calls = 50}).what == action::discard);
    CHECK(decide_on(table, 42, {.calls = 2, .retries = {0, 1}}).why == reason::spent);
    CHECK(decide_on(table, 42, {.calls = 2}).why == reason::total);
}

TEST_CASE("one call and no more where the total is 1") {
    exception_policy rules;
    rules.default_().retry().then_redeliver();
    rules.max_total_attempts(1);
    CHECK(life_of(table_of(rules), 42) == list{"dead letter"});
}

TEST_CASE("a predicate that throws makes a dead letter, with what it threw") {
    exception_policy rules;
    rules.on<smtp_error>([](const smtp_error&) -> bool { throw std::logic_error("the predicate is wrong"); }).retry();
    rules.default_().discard();
    const auto next = decide_on(table_of(rules), smtp_error());
    CHECK(next.what == action::dead_letter);
    CHECK(next.why == reason::rule_failed);
    CHECK(next.problem == "the predicate is wrong");
}

TEST_CASE("what the other side says about the wait goes before the schedule, in a slot only as far as the cap") {
    exception_policy rules;
    rules.on(errc::unavailable).retry(3).then_redeliver();
    const auto table = table_of(rules);
    const auto busy = [](duration d) { return failed({errc::unavailable, "busy", d}); };
    CHECK(decide_on(table, busy(7s)).after == 7s);
    CHECK(decide_on(table, busy(10min)).after == 30s);
    CHECK(decide_on(table, busy(-1s)).after == 0s);
    const exception_history retried{.calls = 4, .retries = {3}};
    CHECK(decide_on(table, busy(7s), retried).what == action::redeliver);
    CHECK(decide_on(table, busy(7s), retried).after == 7s);
    CHECK(decide_on(table, busy(5h), retried).after == 5h); // no slot is held
}

TEST_CASE("the handler's own wish goes before all, for one wait") {
    exception_policy rules;
    rules.on(errc::unavailable).retry(3);
    const auto table = table_of(rules);
    exception_history so_far{.retry_after = 3s};
    const auto next = decide_on(table, failed({errc::unavailable, "busy", 7s}), so_far);
    CHECK(next.after == 3s);
    so_far.add(next);
    CHECK_FALSE(so_far.retry_after);
}

TEST_CASE("a decision repeats with its seed") {
    const auto table = table_of(exception_policy::standard());
    CHECK(life_of(table, 42, 5) == life_of(table, 42, 5));
    CHECK(life_of(table, 42, 5) != life_of(table, 42, 6));
    CHECK(life_of(table, 42).size() == 16);
}
