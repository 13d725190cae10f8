#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <holdfast/policy_config.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

using words = std::vector<std::string>;

policy_options with(std::string_view key, const words& values) {
    policy_options options{.name = "p"};
    const auto set = set_policy_field(options, key, values);
    if (!set) FAIL(set.error().message);
    return options;
}
std::string refusal_of(std::string_view key, const words& values) {
    policy_options options{.name = "p"};
    const auto set = set_policy_field(options, key, values);
    if (set) return "was accepted";
    CHECK(set.error().code == errc::configuration);
    CHECK(options == policy_options{.name = "p"}); // untouched
    return set.error().message;
}
std::string described(const policy_options& options) {
    std::string text;
    for (const auto& [key, value] : describe_policy(options)) text += key + ": " + value + "\n";
    return text;
}

} // namespace

TEST_CASE("every key sets its field") {
    CHECK(with("max_attempts", {"6"}).retry.max_attempts == 6);
    CHECK(with("max_attempts", {"0"}).retry.max_attempts == 0);
    CHECK(with("max_attempts", {"unlimited"}).retry.max_attempts == unlimited);
    CHECK(with("delay", {"250ms"}).retry.delay == 250ms);
    CHECK(with("backoff", {"constant"}).retry.backoff == backoff::constant);
    CHECK(with("backoff", {"linear"}).retry.backoff == backoff::linear);
    CHECK(with("backoff", {"exponential"}).retry.backoff == backoff::exponential);
    CHECK(with("max_delay", {"5m"}).retry.max_delay == 5min);
    CHECK(with("jitter", {"true"}).retry.jitter == true);
    CHECK(with("jitter", {"false"}).retry.jitter == false);
    CHECK(with("intervals", {"1s", "5s"}).retry.intervals == interval_list{1s, 5s});
    CHECK(with("on_circuit_open", {"true"}).retry.on_circuit_open == true);
    CHECK(with("timeout", {"30s"}).timeout == 30s);
    CHECK(with("timeout", {"forever"}).timeout == forever);
    CHECK(with("timeout", {"0"}).timeout == 0s);
    CHECK(with("total_timeout", {"1h30m"}).total_timeout == 90min);
    CHECK(with("breaker.consecutive_failures", {"5"}).breaker.consecutive_failures == 5);
    CHECK(with("breaker.failure_ratio", {"0.5"}).breaker.failure_ratio == .5);
    CHECK(with("breaker.window", {"30s"}).breaker.window == 30s);
    CHECK(with("breaker.min_throughput", {"20"}).breaker.min_throughput == 20);
    CHECK(with("breaker.break_for", {"7s"}).breaker.break_for == 7s);
    CHECK(with("breaker.max_break_for", {"1m"}).breaker.max_break_for == 1min);
    CHECK(with("breaker.probes", {"3"}).breaker.probes == 3);
    CHECK(with("breaker.probe_timeout", {"9s"}).breaker.probe_timeout == 9s);
    CHECK(with("concurrency.limit", {"8"}).concurrency.limit == 8);
    CHECK(with("concurrency.queue", {"100"}).concurrency.queue == 100);
    CHECK(with("rate.permits", {"50"}).rate.permits == 50);
    CHECK(with("rate.per", {"1m"}).rate.per == 1min);
    CHECK(with("rate.burst", {"5"}).rate.burst == 5);
    CHECK(with("budget.ratio", {"0.1"}).budget.ratio == .1);
    CHECK(with("budget.reserve", {"2"}).budget.reserve == 2);
    CHECK(with("hedge.max_hedges", {"2"}).hedge.max_hedges == 2);
    CHECK(with("hedge.after", {"80ms"}).hedge.after == 80ms);
    CHECK(with("fallback", {"failed"}).fallback == fallback_when::failed);
    CHECK(with("fallback", {"rejected_only"}).fallback == fallback_when::rejected_only);
    CHECK(with("fallback", {"never"}).fallback == fallback_when::never);
}

TEST_CASE("every key that is listed changes one thing, and a thing of its own") {
    const auto keys = policy_keys();
    CHECK(keys.size() == 27);
    CHECK(keys.front() == "max_attempts");
    CHECK(std::set(keys.begin(), keys.end()).size() == keys.size());
    std::vector<policy_options> seen{policy_options{.name = "p"}};
    for (const auto key : keys) {
        policy_options options{.name = "p"};
        bool set = false;
        for (const char* value : {"7", "7s", "true", "linear", "never"})
            set = set || set_policy_field(options, key, {value});
        INFO(key);
        CHECK(set);
        CHECK(std::ranges::find(seen, options) == seen.end());
        seen.push_back(options);
    }
}

TEST_CASE("intervals take the place of what they contradict") {
    policy_options options{.name = "p",
                           .retry = {.max_attempts = 4, .delay = 10s, .backoff = backoff::linear, .jitter = true}};
    CHECK(set_policy_field(options, "intervals", {"1s", "2s"}));
    CHECK(check_policy(options));
    CHECK(options.retry == retry_options{.jitter = true, .intervals = {1s, 2s}});
}

TEST_CASE("too many intervals are noticed when the whole is checked") {
    policy_options options{.name = "p"};
    CHECK(set_policy_field(options, "intervals", words(17, "1s")));
    CHECK(check_policy(options).error().message == "policy \"p\": retry.intervals holds at most 16 delays");
}

TEST_CASE("an unknown key is refused with the nearest one") {
    CHECK(refusal_of("max_atempts", {"1"}) == "a policy has no key \"max_atempts\"; did you mean \"max_attempts\"?");
    CHECK(refusal_of("breaker.brek_for", {"1s"}) ==
          "a policy has no key \"breaker.brek_for\"; did you mean \"breaker.break_for\"?");
    CHECK(refusal_of("colour", {"1"}) == "a policy has no key \"colour\"");
    CHECK(refusal_of("", {"1"}) == "a policy has no key \"\"");
}

TEST_CASE("a value of the wrong form is refused, saying what was expected and what was found") {
    for (const char* text : {"", "six", "1.5", "-1", "6 ", "99999999999", "0x6", "Unlimited"})
        CHECK(refusal_of("max_attempts", {text}) ==
              "max_attempts: expected a whole number, found \"" + std::string(text) + "\"");
    CHECK(refusal_of("concurrency.limit", {"unlimited"}) ==
          "concurrency.limit: expected a whole number, found \"unlimited\"");
    for (const char* text : {"", "10", "10 s", "-1s", "soon"})
        CHECK(refusal_of("delay", {text}) ==
              "delay: expected a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", \"1d\", found \"" +
                  std::string(text) + "\"");
    for (const char* text : {"", "half", "0.5x", "nan", "inf", "1e999"})
        CHECK(refusal_of("breaker.failure_ratio", {text}) ==
              "breaker.failure_ratio: expected a number, found \"" + std::string(text) + "\"");
    CHECK(refusal_of("jitter", {"yes"}) == "jitter: expected true or false, found \"yes\"");
    CHECK(refusal_of("backoff", {"Linear"}) == "backoff: expected constant, linear or exponential, found \"Linear\"");
    CHECK(refusal_of("fallback", {"always"}) == "fallback: expected failed, rejected_only or never, found \"always\"");
    CHECK(refusal_of("intervals", {"1s", "2x"}) ==
          "intervals: expected a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", \"1d\", found \"2x\"");
}

TEST_CASE("a list where one value belongs is refused") {
    CHECK(refusal_of("delay", {"1s", "2s"}) == "delay: expected one value, found a list of 2");
    CHECK(refusal_of("timeout", {}) == "timeout: expected one value, found a list of 0");
}

TEST_CASE("a policy is described by what is switched on, with defaults filled in") {
    CHECK(described({.name = "p"}).empty());
    CHECK(described({.name = "p", .retry = {.delay = 10s}}) ==
          "retry: 3 times, 10s exponential, at most 30s, jitter\n");
    CHECK(described({.name = "p",
                     .retry = {.max_attempts = unlimited,
                               .backoff = backoff::constant,
                               .jitter = false,
                               .on_circuit_open = true}}) ==
          "retry: unlimited, 200ms constant, at most 30s, also on an open circuit\n");
    CHECK(described({.name = "p", .retry = {.intervals = {1s, 5s}}}) == "retry: 2 times after 1s 5s\n");
    CHECK(described({.name = "p", .breaker = {.consecutive_failures = 5}}) ==
          "breaker: 5 failures in a row, break 5s, 1 probe\n");
    CHECK(described({.name = "p", .breaker = {.failure_ratio = .25, .max_break_for = 1min, .probes = 2}}) ==
          "breaker: 25% of at least 10 calls in 30s, break 5s growing to 1m, 2 probes\n");
}

TEST_CASE("a description lists the stages from the outside in") {
    CHECK(described({.name = "p",
                     .retry = {.max_attempts = 1, .jitter = false},
                     .rules = {stop_on(errc::timed_out)},
                     .timeout = 2s,
                     .total_timeout = 1min,
                     .breaker = {.consecutive_failures = 2},
                     .concurrency = {.limit = 4, .queue = 8},
                     .rate = {.permits = 10},
                     .budget = {.ratio = .1, .reserve = 2},
                     .fallback = fallback_when::rejected_only}) == "rate: 10 per 1s, burst 10\n"
                                                                   "concurrency: 4, queue 8\n"
                                                                   "total_timeout: 1m\n"
                                                                   "retry: 1 times, 200ms exponential, at most 30s\n"
                                                                   "rules: 1\n"
                                                                   "budget: 0.1 per call, reserve 2 a second\n"
                                                                   "breaker: 2 failures in a row, break 5s, 1 probe\n"
                                                                   "timeout: 2s\n"
                                                                   "fallback: rejected_only\n");
    CHECK(described({.name = "p", .rate = {.permits = 1, .per = 1min, .burst = 3}, .hedge = {.max_hedges = 2}}) ==
          "rate: 1 per 1m, burst 3\nhedge: 2 after 100ms each\n");
}
