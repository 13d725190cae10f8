#include <climits>
#include <limits>
#include <string>

#include <holdfast/policy.hpp>
#include <holdfast/policy_config.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr policy mail({
    .name = "invoice-email",
    .retry = {.max_attempts = 4, .delay = 10s, .backoff = backoff::exponential, .max_delay = 5min, .jitter = true},
    .timeout = 30s,
});
static_assert(mail.name() == "invoice-email");
static_assert(mail.options().timeout == 30s);

// Empty when the policy is valid, else why not.
std::string refusal_of(const policy_options& options) {
    const auto checked = check_policy(options);
    if (checked) return {};
    CHECK(checked.error().code == errc::invalid_policy);
    const std::string start = "policy \"" + std::string(options.name) + "\": ";
    CHECK(checked.error().message.starts_with(start));
    return checked.error().message.substr(start.size());
}

policy_options named() {
    return {.name = "p"};
}
template <class Change>
std::string refusal_with(Change change) {
    policy_options options = named();
    change(options);
    return refusal_of(options);
}

constexpr std::string_view good_characters = "-_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

} // namespace

TEST_CASE("a policy without retry fields does not retry") {
    CHECK_FALSE(retry_options{}.enabled());
    CHECK(resolve({}).max_attempts == 0);
}

TEST_CASE("naming any retry field switches retry on, with the documented defaults for the rest") {
    CHECK(retry_options{.max_attempts = 1}.enabled());
    CHECK(retry_options{.delay = 1s}.enabled());
    CHECK(retry_options{.backoff = backoff::linear}.enabled());
    CHECK(retry_options{.max_delay = 1min}.enabled());
    CHECK(retry_options{.jitter = false}.enabled());
    CHECK(retry_options{.intervals = {1s}}.enabled());
    CHECK(retry_options{.delay_for = [](const failure&, int) { return std::optional<duration>(); }}.enabled());
    CHECK(retry_options{.on_circuit_open = false}.enabled());

    const retry_settings s = resolve({.jitter = true});
    CHECK(s.max_attempts == 3);
    CHECK(s.delay == 200ms);
    CHECK(s.backoff == backoff::exponential);
    CHECK(s.max_delay == 30s);
    CHECK(s.jitter);
    CHECK_FALSE(s.on_circuit_open);
    CHECK(s.delay_for == nullptr);
}

TEST_CASE("what is given is taken over") {
    const retry_settings s = resolve({.max_attempts = unlimited,
                                      .delay = 1s,
                                      .backoff = backoff::linear,
                                      .max_delay = 7s,
                                      .jitter = false,
                                      .on_circuit_open = true});
    CHECK(s.max_attempts == unlimited);
    CHECK(s.delay == 1s);
    CHECK(s.backoff == backoff::linear);
    CHECK(s.max_delay == 7s);
    CHECK_FALSE(s.jitter);
    CHECK(s.on_circuit_open);
}

TEST_CASE("the cap on delays is the delay itself where that is longer than the usual cap") {
    CHECK(resolve({.delay = 29s}).max_delay == 30s);
    CHECK(resolve({.delay = 2min}).max_delay == 2min);
}

TEST_CASE("an interval list says how often and how long, without jitter unless asked") {
    retry_settings s = resolve({.intervals = {1s, 5s, 30s}});
    CHECK(s.max_attempts == 3);
    CHECK_FALSE(s.jitter);
    random_series random(1);
    CHECK(s.delay_before(1, random) == 1s);
    CHECK(s.delay_before(2, random) == 5s);
    CHECK(s.delay_before(3, random) == 30s);
    CHECK_FALSE(s.spent(3));
    CHECK(s.spent(4));
    CHECK(resolve({.jitter = true, .intervals = {1s}}).jitter);
}

TEST_CASE("unlimited retries are never spent") {
    CHECK_FALSE(resolve({.max_attempts = unlimited}).spent(INT_MAX));
    CHECK(resolve({.max_attempts = 0}).spent(1));
    CHECK(resolve({.max_attempts = 2}).spent(3));
    CHECK_FALSE(resolve({.max_attempts = 2}).spent(2));
}

TEST_CASE("a policy with nothing but a name is valid, and so is one with everything") {
    CHECK(refusal_of(named()).empty());
    CHECK(refusal_of(mail.options()).empty());
    CHECK(refusal_of({.name = "full",
                      .retry = {.max_attempts = unlimited, .delay = 0s, .max_delay = 0s, .jitter = false},
                      .rules = {retry_on(errc::timed_out, 0)},
                      .timeout = 1s,
                      .total_timeout = 1s,
                      .breaker = {.failure_ratio = 1.0,
                                  .window = 10ms,
                                  .min_throughput = 100'000,
                                  .break_for = 1ns,
                                  .max_break_for = 1ns,
                                  .probes = 1000,
                                  .probe_timeout = 1ns},
                      .concurrency = {.limit = 1, .queue = INT_MAX},
                      .rate = {.permits = 1, .per = 1ns, .burst = INT_MAX},
                      .budget = {.ratio = 1000, .reserve = 1e9},
                      .fallback = fallback_when::never})
              .empty());
    CHECK(refusal_with([](auto& o) { o.hedge = {.max_hedges = 16, .after = 0s}; }).empty());
    CHECK(refusal_with([](auto& o) { o.timeout = forever, o.total_timeout = 1s; }).empty());
    CHECK(refusal_with([](auto& o) { o.timeout = 0s, o.total_timeout = 0s; }).empty());
}

TEST_CASE("the name of a policy is checked") {
    CHECK(refusal_of({.name = ""}) == "a policy needs a name");
    CHECK(refusal_of({.name = std::string_view()}) == "a policy needs a name");
    const std::string longest(128, 'x'), too_long(129, 'x');
    CHECK(refusal_of({.name = longest}).empty());
    CHECK(refusal_of({.name = too_long}) == "a policy name has at most 128 characters");
    for (int c = 0; c < 256; ++c) {
        const std::string name{static_cast<char>(c)};
        INFO(c);
        CHECK(refusal_of({.name = name}).empty() == good_characters.contains(static_cast<char>(c)));
    }
    CHECK(refusal_of({.name = "two words"}) == "a policy name is made of letters, digits, '-', '_' and '.'");
}

TEST_CASE("retry is checked") {
    CHECK(refusal_with([](auto& o) { o.retry.max_attempts = -2; }) ==
          "retry.max_attempts must be 0 or more, or holdfast::unlimited");
    CHECK(refusal_with([](auto& o) { o.retry.max_attempts = 0; }).empty());
    CHECK(refusal_with([](auto& o) { o.retry.delay = -1ns; }) == "retry.delay must not be negative");
    CHECK(refusal_with([](auto& o) { o.retry.max_delay = -1ns; }) == "retry.max_delay must not be negative");
    CHECK(refusal_with([](auto& o) { o.retry = {.delay = 2s, .max_delay = 1999ms}; }) ==
          "retry.max_delay is shorter than retry.delay");
    CHECK(refusal_with([](auto& o) { o.retry = {.max_delay = 199ms}; }) ==
          "retry.max_delay is shorter than retry.delay");
    CHECK(refusal_with([](auto& o) { o.retry = {.max_delay = 200ms}; }).empty());
    CHECK(refusal_with([](auto& o) { o.retry.intervals = {1s, -1s}; }) == "retry.intervals must not be negative");
    CHECK(refusal_with([](auto& o) {
              for (int i = 0; i < 17; ++i) o.retry.intervals.push_back(1s);
          }) == "retry.intervals holds at most 16 delays");
    CHECK(refusal_with([](auto& o) {
              for (int i = 0; i < 16; ++i) o.retry.intervals.push_back(1s);
          }).empty());
    const std::string doubled =
        "retry.intervals already says how often and how long: drop max_attempts, delay and backoff";
    CHECK(refusal_with([](auto& o) { o.retry = {.max_attempts = 1, .intervals = {1s}}; }) == doubled);
    CHECK(refusal_with([](auto& o) { o.retry = {.delay = 1s, .intervals = {1s}}; }) == doubled);
    CHECK(refusal_with([](auto& o) { o.retry = {.backoff = backoff::linear, .intervals = {1s}}; }) == doubled);
    CHECK(refusal_with([](auto& o) { o.retry = {.jitter = true, .intervals = {1s}}; }).empty());
}

TEST_CASE("rules are checked") {
    CHECK(refusal_with([](auto& o) {
              for (int i = 0; i < 9; ++i) o.rules.push_back(stop_on(errc::timed_out));
          }) == "rules holds at most 8 rules");
    CHECK(refusal_with([](auto& o) { o.rules = {retry_on(errc::timed_out, -2)}; }) ==
          "the attempts of a rule must not be negative");
    CHECK(refusal_with([](auto& o) { o.rules = {retry_on(errc::timed_out, unlimited)}; }).empty());
}

TEST_CASE("timeouts are checked") {
    CHECK(refusal_with([](auto& o) { o.timeout = -1ns; }) == "timeout must not be negative");
    CHECK(refusal_with([](auto& o) { o.total_timeout = -1ns; }) == "total_timeout must not be negative");
    CHECK(refusal_with([](auto& o) { o.timeout = 1s + 1ns, o.total_timeout = 1s; }) ==
          "timeout (of one attempt) is longer than total_timeout");
    CHECK(refusal_with([](auto& o) { o.timeout = 1s, o.total_timeout = forever; }).empty());
}

TEST_CASE("the breaker is checked") {
    const auto with = [](breaker_options b) { return refusal_with([&](auto& o) { o.breaker = b; }); };
    for (const breaker_options& b :
         {breaker_options{.window = 1s}, breaker_options{.min_throughput = 1}, breaker_options{.break_for = 1s},
          breaker_options{.max_break_for = 10s}, breaker_options{.probes = 1}, breaker_options{.probe_timeout = 1s}})
        CHECK(with(b) == "breaker needs consecutive_failures or failure_ratio");
    CHECK(with({.consecutive_failures = 3, .failure_ratio = .5}) ==
          "breaker takes consecutive_failures or failure_ratio, not both");
    CHECK(with({.consecutive_failures = 0}) == "breaker.consecutive_failures must be at least 1");
    for (const double ratio :
         {0.0, -0.1, 1.01, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        CHECK(with({.failure_ratio = ratio}) == "breaker.failure_ratio must be above 0 and at most 1");
    CHECK(with({.failure_ratio = .5, .window = 9'999'999ns}) == "breaker.window must be at least 10ms");
    CHECK(with({.failure_ratio = .5, .min_throughput = 0}) == "breaker.min_throughput must be 1 to 100000");
    CHECK(with({.failure_ratio = .5, .min_throughput = 100'001}) == "breaker.min_throughput must be 1 to 100000");
    CHECK(with({.consecutive_failures = 3, .break_for = 0s}) == "breaker.break_for must be positive");
    CHECK(with({.consecutive_failures = 3, .max_break_for = 4s}) ==
          "breaker.max_break_for is shorter than breaker.break_for");
    CHECK(with({.consecutive_failures = 3, .break_for = 4s, .max_break_for = 4s}).empty());
    CHECK(with({.consecutive_failures = 3, .probes = 0}) == "breaker.probes must be 1 to 1000");
    CHECK(with({.consecutive_failures = 3, .probes = 1001}) == "breaker.probes must be 1 to 1000");
    CHECK(with({.consecutive_failures = 3, .probe_timeout = 0s}) == "breaker.probe_timeout must be positive");
}

TEST_CASE("limits, budget and hedge are checked") {
    CHECK(refusal_with([](auto& o) { o.concurrency.limit = -1; }) ==
          "concurrency.limit and concurrency.queue must not be negative");
    CHECK(refusal_with([](auto& o) { o.concurrency = {.limit = 1, .queue = -1}; }) ==
          "concurrency.limit and concurrency.queue must not be negative");
    CHECK(refusal_with([](auto& o) { o.concurrency.queue = 1; }) == "concurrency.queue needs a concurrency.limit");
    CHECK(refusal_with([](auto& o) { o.rate.permits = -1; }) == "rate.permits and rate.burst must not be negative");
    CHECK(refusal_with([](auto& o) { o.rate = {.permits = 1, .burst = -1}; }) ==
          "rate.permits and rate.burst must not be negative");
    CHECK(refusal_with([](auto& o) { o.rate.per = 0s; }) == "rate.per must be positive");
    CHECK(refusal_with([](auto& o) { o.rate = {.permits = 11, .per = 10ns}; }) ==
          "rate allows more than one call a nanosecond");
    CHECK(refusal_with([](auto& o) { o.rate = {.permits = 10, .per = 10ns}; }).empty());
    CHECK(refusal_with([](auto& o) { o.rate.burst = 1; }) == "rate.burst needs rate.permits");
    const std::string budget = "budget.ratio must be 0 to 1000 and budget.reserve 0 to 1e9";
    CHECK(refusal_with([](auto& o) { o.budget.ratio = -.1; }) == budget);
    CHECK(refusal_with([](auto& o) { o.budget.ratio = 1001; }) == budget);
    CHECK(refusal_with([](auto& o) { o.budget.ratio = std::numeric_limits<double>::quiet_NaN(); }) == budget);
    CHECK(refusal_with([](auto& o) { o.budget.reserve = -1; }) == budget);
    CHECK(refusal_with([](auto& o) { o.budget.reserve = 1.1e9; }) == budget);
    CHECK(refusal_with([](auto& o) { o.budget.reserve = std::numeric_limits<double>::quiet_NaN(); }) == budget);
    CHECK(refusal_with([](auto& o) { o.hedge.max_hedges = -1; }) == "hedge.max_hedges must be 0 to 16");
    CHECK(refusal_with([](auto& o) { o.hedge.max_hedges = 17; }) == "hedge.max_hedges must be 0 to 16");
    CHECK(refusal_with([](auto& o) { o.hedge = {.max_hedges = 1, .after = -1ns}; }) ==
          "hedge.after must not be negative");
    CHECK(refusal_with([](auto& o) { o.hedge.max_hedges = 1, o.retry.max_attempts = 1; }) ==
          "a policy retries or hedges, not both");
}

TEST_CASE("outside a constant expression a bad policy throws the same reason") {
    try {
        validate({.name = "p", .timeout = -1s});
        FAIL("not refused");
    } catch (const invalid_policy& e) {
        CHECK(e.code() == errc::invalid_policy);
        CHECK(std::string(e.what()) == "timeout must not be negative");
    }
}
