// The chains, row by row, and every default in them.
#include "catch.hpp"
#include "exception_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::life_of;
using test::smtp_error;
using test::table_of;
using list = std::vector<std::string>;

namespace {

// The only rule of a policy that `declare` makes with a single chain.
template <class Declare>
exception_rule made_by(Declare declare) {
    exception_policy rules;
    declare(rules);
    REQUIRE(rules.rules().size() == 1);
    return rules.rules().front();
}

bool is_default_retry(const retry_settings& r, int attempts = 3) {
    return r.max_attempts == attempts && r.delay == 200ms && r.backoff == backoff::exponential && r.jitter &&
           r.max_delay == 30s && r.intervals.empty();
}
bool is_default_redelivery(const retry_settings& r) {
    return r.max_attempts == 3 && r.intervals == interval_list{5min, 15min, 30min} && r.jitter && r.max_delay == 1h;
}

// The waits of all retries, or of all redeliveries, without jitter.
list waits(retry_settings how) {
    how.jitter = false;
    random_series unused(0);
    list all;
    for (int n = 1; !how.spent(n); ++n) all.push_back(to_text(how.delay_before(n, unused)));
    return all;
}

} // namespace

TEST_CASE("discard: no retry, no redelivery") {
    const auto rule = made_by([](auto& rules) { rules.template on<smtp_error>().discard(); });
    CHECK(rule.is_terminal());
    CHECK(rule.then == exception_rule::ending::discard);
}

TEST_CASE("dead_letter: no retry, no redelivery") {
    const auto rule = made_by([](auto& rules) { rules.template on<smtp_error>().dead_letter(); });
    CHECK(rule.is_terminal());
    CHECK(rule.then == exception_rule::ending::dead_letter);
}

TEST_CASE("retry() is 3 times after 200ms, exponential, with jitter, at most 30s, it switches redelivery off") {
    const auto rule = made_by([](auto& rules) { rules.template on<smtp_error>().retry(); });
    REQUIRE(rule.retry);
    CHECK(is_default_retry(*rule.retry));
    CHECK_FALSE(rule.redeliver);
    CHECK(rule.then == exception_rule::ending::dead_letter);
}

TEST_CASE("retry(n) changes the number and nothing else") {
    const auto rule = made_by([](auto& rules) { rules.template on<smtp_error>().retry(5); });
    CHECK(is_default_retry(*rule.retry, 5));
    CHECK_FALSE(rule.redeliver);
}

TEST_CASE("redeliver() is 5, 15 and 30 minutes with jitter, at most 1h, it switches retry off") {
    const auto rule = made_by([](auto& rules) { rules.template on<smtp_error>().redeliver(); });
    CHECK_FALSE(rule.retry);
    REQUIRE(rule.redeliver);
    CHECK(is_default_redelivery(*rule.redeliver));
    CHECK(rule.then == exception_rule::ending::dead_letter);
}

TEST_CASE("retry(3) and then_redeliver() have both, each with its defaults") {
    const auto rule = made_by([](auto& rules) { rules.template on<smtp_error>().retry(3).then_redeliver(); });
    CHECK(is_default_retry(*rule.retry));
    CHECK(is_default_redelivery(*rule.redeliver));
}

TEST_CASE("then_dead_letter() says what happens anyway") {
    const auto same = [](const exception_rule& a, const exception_rule& b) {
        return a.retry.has_value() == b.retry.has_value() && a.redeliver.has_value() == b.redeliver.has_value() &&
               a.then == b.then;
    };
    CHECK(same(made_by([](auto& rules) { rules.default_().retry(3).then_dead_letter(); }),
               made_by([](auto& rules) { rules.default_().retry(3); })));
    CHECK(same(made_by([](auto& rules) { rules.default_().redeliver().then_dead_letter(); }),
               made_by([](auto& rules) { rules.default_().redeliver(); })));
    CHECK(same(made_by([](auto& rules) { rules.default_().retry(3).then_redeliver().then_dead_letter(); }),
               made_by([](auto& rules) { rules.default_().retry(3).then_redeliver(); })));
}

TEST_CASE("the standard policy is retry() and then_redeliver() for whatever fails") {
    const auto rules = exception_policy::standard().rules();
    REQUIRE(rules.size() == 1);
    CHECK(rules[0].takes_all());
    CHECK(is_default_retry(*rules[0].retry));
    CHECK(is_default_redelivery(*rules[0].redeliver));
}

TEST_CASE("golden delays of retries") {
    const auto of = [](auto&&... how) {
        return waits(*made_by([&](auto& rules) { rules.default_().retry(how...); }).retry);
    };
    CHECK(of() == list{"200ms", "400ms", "800ms"});
    CHECK(of(9) == list{"200ms", "400ms", "800ms", "1s600ms", "3s200ms", "6s400ms", "12s800ms", "25s600ms", "30s"});
    CHECK(of(3, 500ms) == list{"500ms", "1s", "2s"});
    CHECK(of(4, 500ms, backoff::constant) == list{"500ms", "500ms", "500ms", "500ms"});
    CHECK(of(4, 500ms, backoff::linear) == list{"500ms", "1s", "1s500ms", "2s"});
    CHECK(of(3, 0s) == list{"0", "0", "0"});
    CHECK(of(2, 1min) == list{"1m", "1m"}); // a delay above the cap is the cap
    CHECK(of(interval_list{100ms, 500ms, 2s}) == list{"100ms", "500ms", "2s"});
    CHECK(of(interval_list{1min, 1s}) == list{"1m", "1s"});
}

TEST_CASE("golden delays of redeliveries") {
    const auto of = [](auto&&... how) {
        return waits(*made_by([&](auto& rules) { rules.default_().redeliver(how...); }).redeliver);
    };
    CHECK(of() == list{"5m", "15m", "30m"});
    CHECK(of(6, 2min) == list{"2m", "4m", "8m", "16m", "32m", "1h"});
    CHECK(of(3, 2min, backoff::constant) == list{"2m", "2m", "2m"});
    CHECK(of(2, 3h) == list{"3h", "3h"});
    CHECK(of(interval_list{30s, 5min, 30min}) == list{"30s", "5m", "30m"});
    const auto after_retries = made_by([](auto& rules) { rules.default_().retry().then_redeliver(2, 2min); });
    CHECK(waits(*after_retries.redeliver) == list{"2m", "4m"});
    const auto exact = made_by([](auto& rules) { rules.default_().retry().then_redeliver({5min, 15min}); });
    CHECK(waits(*exact.redeliver) == list{"5m", "15m"});
}

TEST_CASE("given intervals are exact, all else has jitter between half of the delay and the delay") {
    exception_policy rules;
    rules.on<smtp_error>().retry({100ms, 500ms}).then_redeliver({30s});
    CHECK(life_of(table_of(rules), smtp_error()) ==
          list{"retry 100ms", "retry 500ms", "redeliver 30s", "retry 100ms", "retry 500ms", "dead letter"});

    rules.default_().retry(1).then_redeliver();
    const auto table = table_of(rules);
    bool differ = false;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const auto first = test::decide_on(table, 42, {}, seed);
        const auto later = test::decide_on(table, 42, {.redeliveries = 2, .calls = 6, .retries = {0, 1}}, seed);
        CHECK((first.after >= 100ms && first.after <= 200ms));
        CHECK((later.after >= 15min && later.after <= 30min));
        differ = differ || first.after != 200ms;
    }
    CHECK(differ);
}

TEST_CASE("every redelivery runs a fresh cycle of retries") {
    exception_policy rules;
    rules.default_().retry({1s, 2s}).then_redeliver({1min, 2min});
    CHECK(life_of(table_of(rules), 42) == list{"retry 1s", "retry 2s", "redeliver 1m", "retry 1s", "retry 2s",
                                               "redeliver 2m", "retry 1s", "retry 2s", "dead letter"});
}

TEST_CASE("a number or a delay that makes no sense is refused where it is declared, and declares nothing") {
    exception_policy rules;
    CHECK_THROWS_AS(rules.default_().retry(0), invalid_policy);
    CHECK_THROWS_AS(rules.default_().retry(-1), invalid_policy);
    CHECK_THROWS_AS(rules.default_().retry(3, -1ms), invalid_policy);
    CHECK_THROWS_AS(rules.default_().retry(interval_list{}), invalid_policy);
    CHECK_THROWS_AS(rules.default_().retry({1s, -1s}), invalid_policy);
    CHECK_THROWS_AS(rules.default_().retry({1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s}),
                    invalid_policy);
    CHECK_THROWS_AS(rules.default_().redeliver(0, 1s), invalid_policy);
    CHECK_THROWS_AS(rules.max_total_attempts(0), invalid_policy);
    CHECK(rules.empty());
}
