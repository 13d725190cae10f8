// Cases 9 to 17: how long it waits between attempts.
#include <climits>
#include <set>

#include "lab.hpp"

namespace holdfast::conformance {

namespace {

// When each attempt of an execution that only fails was made.
std::vector<duration> times_of(lab& l, bound_policy p) {
    std::vector<duration> at;
    const duration start = l.now();
    l.run(p, [&](attempt&) -> int {
        at.push_back(l.now() - start);
        throw std::runtime_error("down");
    });
    return at;
}

std::vector<duration> delays_in(const execution_report& o) {
    std::vector<duration> delays;
    for (const auto& each : o.attempts())
        if (each.delay_after) delays.push_back(*each.delay_after);
    return delays;
}

int always_fails(attempt&) {
    throw std::runtime_error("down");
}

void exact_delays(lab& l) {
    const auto times = [&](const char* name, backoff kind) {
        return times_of(
            l, l.add({.name = name, .retry = {.max_attempts = 4, .delay = 100ms, .backoff = kind, .jitter = false}}));
    };
    const std::vector<duration> constant{0ms, 100ms, 200ms, 300ms, 400ms}, linear{0ms, 100ms, 300ms, 600ms, 1000ms},
        exponential{0ms, 100ms, 300ms, 700ms, 1500ms};
    check_equal(times("constant", backoff::constant), constant, "times of constant backoff");
    check_equal(times("linear", backoff::linear), linear, "times of linear backoff");
    check_equal(times("exponential", backoff::exponential), exponential, "times of exponential backoff");
    const auto o = l.run(l.bind("exponential"), always_fails);
    check_equal(delays_in(o), std::vector<duration>{100ms, 200ms, 400ms, 800ms}, "delays in the ledger");
}

void saturation(lab& l) {
    for (const auto kind : {backoff::linear, backoff::exponential})
        for (const duration base : {duration(1ns), duration(1ms), duration(1h)})
            for (const duration cap : {duration(2h), duration(std::chrono::hours{24 * 365}), forever})
                for (const std::int64_t n : {62, 63, 64, 1024, INT_MAX}) {
                    const duration d = backoff_delay(kind, base, cap, n);
                    check_between(d, base, cap, "the delay before retry " + std::to_string(n));
                    check(d >= backoff_delay(kind, base, cap, n - 1), "a later delay is never shorter");
                }
    for (const std::int64_t n : {62, 63, 64, 1024, INT_MAX})
        check_equal(backoff_delay(backoff::exponential, 1ms, 1h, n), duration(1h),
                    "the delay before retry " + std::to_string(n));
    check_equal(backoff_delay(backoff::linear, 1h, 2h, INT_MAX), duration(2h), "the linear delay at the cap");

    const auto p =
        l.add({.name = "capped", .retry = {.max_attempts = 70, .delay = 1ns, .max_delay = 5min, .jitter = false}});
    const auto times = times_of(l, p);
    check_equal(times.size(), 71U, "calls");
    for (std::size_t i = 1; i < times.size(); ++i)
        check_equal(times[i] - times[i - 1],
                    backoff_delay(backoff::exponential, 1ns, 5min, static_cast<std::int64_t>(i)),
                    "the wait before retry " + std::to_string(i));
    check_equal(times[70] - times[69], duration(5min), "the wait before retry 70");
}

void zero_base(lab& l) {
    for (const auto kind : {backoff::constant, backoff::linear, backoff::exponential})
        for (const std::int64_t n : {1, 2, 64, INT_MAX})
            check_equal(backoff_delay(kind, 0ms, 1h, n), duration::zero(),
                        "the delay before retry " + std::to_string(n));
    const auto p = l.add({.name = "zero", .retry = {.max_attempts = 80, .delay = 0ms, .jitter = true}});
    check_equal(times_of(l, p).size(), 81U, "calls");
    check_equal(l.now(), duration::zero(), "virtual time that passed");
}

void jitter_interval(lab& l) {
    random_series series(l.how().seed), again(l.how().seed);
    duration least = forever, most{};
    for (int i = 0; i < 1'000'000; ++i) {
        const duration d = with_jitter(1001ns, series);
        check_between(d, duration(501ns), duration(1001ns), "a jittered delay");
        check_equal(with_jitter(1001ns, again), d, "the same draw of the same seed");
        least = std::min(least, d);
        most = std::max(most, d);
    }
    check_equal(least, duration(501ns), "the least of many draws");
    check_equal(most, duration(1001ns), "the most of many draws");

    const policy_options o{.name = "jittered", .retry = {.max_attempts = 6, .delay = 1s, .max_delay = 1min}};
    const auto delays_with = [&](std::uint64_t seed) {
        holdfast::engine other(l.rt(), seed);
        check(other.catalog().add(o).has_value(), "the catalog takes the policy");
        return delays_in(l.run(other.policies().bind(o.name), always_fails));
    };
    const auto delays = delays_with(l.how().seed);
    check_equal(delays_with(l.how().seed), delays, "delays of the same seed");
    check(delays_with(l.how().seed + 1) != delays, "another seed gives other delays");
    for (std::size_t i = 0; i < delays.size(); ++i) {
        const duration plain = backoff_delay(backoff::exponential, 1s, 1min, static_cast<std::int64_t>(i + 1));
        check_between(delays[i], plain - plain / 2, plain, "the jittered wait before retry " + std::to_string(i + 1));
    }
}

void jitter_per_execution(lab& l) {
    const policy_options o{.name = "jittered", .retry = {.max_attempts = 5, .delay = 1s}};
    constexpr int executions = 8;
    std::multiset<std::vector<duration>> alone, together;
    {
        holdfast::engine e(l.rt(), l.how().seed);
        check(e.catalog().add(o).has_value(), "the catalog takes the policy");
        for (int i = 0; i < executions; ++i) alone.insert(delays_in(l.run(e.policies().bind(o.name), always_fails)));
    }
    holdfast::engine e(l.rt(), l.how().seed);
    check(e.catalog().add(o).has_value(), "the catalog takes the policy");
    std::vector<task<outcome<int>>> running;
    for (int i = 0; i < executions; ++i) running.push_back(lab::start_async(e.policies().bind(o.name), always_fails));
    for (const auto& each : l.await(when_all(std::move(running)))) together.insert(delays_in(each));
    check(alone == together, "executions side by side draw what they would draw alone");
    check_equal(std::set(alone.begin(), alone.end()).size(), static_cast<std::size_t>(executions),
                "different series of delays");
}

void cap_after_jitter(lab& l) {
    const auto p = l.add({.name = "capped", .retry = {.max_attempts = 60, .delay = 10s, .max_delay = 10s}});
    const auto q = l.add({.name = "grown", .retry = {.max_attempts = 60, .delay = 1s, .max_delay = 10s}});
    for (const auto& each : {p, q}) {
        const auto times = times_of(l, each);
        for (std::size_t i = 5; i < times.size(); ++i)
            check_between(times[i] - times[i - 1], duration(5s), duration(10s), "a jittered wait at the cap");
    }
}

void interval_list_is_exact(lab& l) {
    const auto p = l.add({.name = "listed", .retry = {.intervals = {10ms, 50ms, 20ms}}});
    check_equal(times_of(l, p), std::vector<duration>{0ms, 10ms, 60ms, 80ms}, "times of the calls");
    const auto o = l.run(p, [](attempt& a) -> int {
        check_equal(a.max_number(), 4, "largest attempt number");
        throw std::runtime_error("down");
    });
    check_equal(o.stop_reason(), stop_reason::exhausted, "stop reason");
    const auto single = l.add({.name = "single", .retry = {.intervals = {1h}}});
    check_equal(times_of(l, single), std::vector<duration>{0h, 1h}, "times of the calls with one interval");
}

std::optional<duration> chosen_delay(const failure& f, int retry) {
    check(f.as<std::runtime_error>() != nullptr, "the generator sees the failure");
    switch (retry) {
    case 1: return std::nullopt;
    case 2: return -5s;
    case 3: return 10h;
    default: return 7ms;
    }
}

void delay_generator(lab& l) {
    const auto p = l.add(
        {.name = "generated",
         .retry = {.max_attempts = 4, .delay = 100ms, .max_delay = 1min, .jitter = false, .delay_for = chosen_delay}});
    check_equal(times_of(l, p), std::vector<duration>{0ms, 100ms, 100ms, 60'100ms, 60'107ms}, "times of the calls");
    const auto q = l.add(
        {.name = "limited",
         .retry = {.max_attempts = 4, .delay = 100ms, .max_delay = 1min, .jitter = false, .delay_for = chosen_delay},
         .total_timeout = 30s});
    const duration before = l.now();
    const auto o = l.run(q, always_fails);
    check_equal(o.stop_reason(), stop_reason::deadline, "stop reason when the delay passes the deadline");
    check_equal(l.now() - before, duration(100ms), "time spent when the delay passes the deadline");
    check_equal(o.attempt_count(), 3, "attempts before the delay that passes the deadline");
    check_exception<std::runtime_error>(o.exception(), "down", "the last error");
}

void retry_after_hint(lab& l) {
    const auto p =
        l.add({.name = "hinted", .retry = {.max_attempts = 4, .delay = 100ms, .max_delay = 1min, .jitter = false}});
    std::vector<duration> at;
    const auto hint = [](int number) {
        return number == 1 ? duration(-1h) : number == 2 ? duration(1s) : number == 3 ? duration(10h) : forever;
    };
    const auto check_times = [&](std::string_view what) {
        for (std::size_t i = at.size(); i-- > 0;) at[i] -= at[0];
        check_equal(at, std::vector<duration>{0s, 0s, 1s, 61s, 121s}, what);
        at.clear();
    };
    l.run(p, [&](attempt& a) -> int {
        at.push_back(l.now());
        a.retry_after(hint(a.number()));
        throw std::runtime_error("busy");
    });
    check_times("times when the attempt passes the hint on");
    l.run(p, [&](attempt& a) -> int {
        at.push_back(l.now());
        throw failed({errc::unavailable, "busy", hint(a.number())});
    });
    check_times("times when the exception carries the hint");
    const auto q = l.add({.name = "hinted-result",
                          .retry = {.max_attempts = 4, .delay = 100ms, .max_delay = 1min, .jitter = false},
                          .rules = {retry_on(errc::unavailable)}});
    l.run(q, [&](attempt& a) -> result<int> {
        at.push_back(l.now());
        return std::unexpected(error{errc::unavailable, "busy", hint(a.number())});
    });
    check_times("times when the result carries the hint");
}

} // namespace

test_group backoff_group() {
    return {"backoff",
            {
                {9, "constant, linear and exponential delays are exact without jitter", exact_delays},
                {10, "delays of very late attempts saturate at the cap and are never negative", saturation},
                {11, "a base of zero stays zero", zero_base},
                {12, "jitter stays within its interval, and the same seed gives the same series", jitter_interval},
                {13, "jitter state belongs to one execution", jitter_per_execution},
                {14, "the cap holds after jitter", cap_after_jitter},
                {15, "a list of intervals gives exactly its length in retries", interval_list_is_exact},
                {16, "a delay generator may pass, go below zero, or ask for too much", delay_generator},
                {17, "a retry-after hint in the past is zero and a huge one is clamped", retry_after_hint},
            }};
}

} // namespace holdfast::conformance
