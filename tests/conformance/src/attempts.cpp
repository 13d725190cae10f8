// Cases 1 to 8: how often the function is called, and what comes back.
#include <algorithm>
#include <climits>
#include <cstdint>
#include <thread>

#include "lab.hpp"

namespace holdfast::conformance {

namespace {

struct error_a : std::runtime_error {
    error_a() : runtime_error("a") {}
};
struct error_b : std::runtime_error {
    error_b() : runtime_error("b") {}
};
struct worse_a : error_a {};
struct predicate_error : std::logic_error {
    using logic_error::logic_error;
};

constexpr auto reset = std::errc::connection_reset;
constexpr auto denied = std::errc::permission_denied;

void no_retries(lab& l) {
    const auto p = l.add({.name = "once"});
    int calls = 0;
    const auto failed = l.run(p, [&](attempt& a) -> int {
        ++calls;
        check_equal(a.number(), 1, "attempt number");
        throw std::runtime_error("down");
    });
    check_equal(calls, 1, "calls that fail");
    check_equal(failed.attempt_count(), 1, "attempt count");
    check_equal(failed.stop_reason(), stop_reason::exhausted, "stop reason");
    const auto good = l.run(p, [&](attempt&) { return ++calls; });
    check_equal(*good, 2, "value");
    check(good.succeeded(), "a call that returns succeeds");
    check_equal(l.now(), duration::zero(), "virtual time that passed");
    check_equal(l.timers(), 0U, "timers left");
}

void n_retries(lab& l) {
    const auto p = l.add({.name = "many", .retry = {.max_attempts = 0, .delay = 1ms, .jitter = false}});
    for (const int retries : {0, 1, 3, 40}) {
        check(l.engine()
                  .catalog()
                  .replace({{.name = "many", .retry = {.max_attempts = retries, .delay = 1ms}}})
                  .has_value(),
              "the catalog takes the change");
        int calls = 0;
        const auto o = l.run(p, [&](attempt& a) -> int {
            ++calls;
            check_equal(a.number(), calls, "attempt number");
            check_equal(a.max_number(), retries + 1, "largest attempt number");
            check_equal(a.last(), calls == retries + 1, "last attempt");
            throw std::runtime_error("down");
        });
        check_equal(calls, retries + 1, "calls");
        check_equal(o.attempt_count(), retries + 1, "attempt count");
    }
    const auto endless = l.add({.name = "endless", .retry = {.max_attempts = unlimited, .delay = 0ms}});
    constexpr int enough = 10'000;
    const auto o = l.run(endless, [&](attempt& a) -> int {
        check(!a.last(), "no attempt of an unlimited series is the last");
        check_equal(a.max_number(), unlimited, "largest attempt number");
        if (a.number() < enough) throw std::runtime_error("down");
        return a.number();
    });
    check_equal(*o, enough, "attempts of an unlimited series");
    check_equal(o.attempts().omitted() + o.attempts().size(), static_cast<std::size_t>(enough),
                "attempts in the ledger");
    constexpr auto settings = resolve({.max_attempts = unlimited});
    check(!settings.spent(INT_MAX), "an unlimited series is never spent");
}

void what_comes_back(lab& l) {
    const auto p = l.add({.name = "errors", .retry = {.max_attempts = 2, .delay = 1ms}});
    int calls = 0;
    const auto final = [&](attempt&) -> int {
        ++calls;
        throw non_retryable_error("never again");
    };
    auto o = l.run(p, final);
    check_equal(calls, 1, "calls that end with a non-retryable error");
    check_equal(o.stop_reason(), stop_reason::rule, "stop reason of a non-retryable error");
    check_exception<non_retryable_error>(o.exception(), "never again", "the error");
    check_exception<non_retryable_error>(thrown_by([&] { l.execute(p, final); }), "never again", "what execute throws");

    calls = 0;
    const auto failing = [&](attempt& a) -> int {
        ++calls;
        throw std::out_of_range("attempt " + std::to_string(a.number()));
    };
    o = l.run(p, failing);
    check_equal(calls, 3, "calls that end with a retryable error");
    check_equal(o.stop_reason(), stop_reason::exhausted, "stop reason of a retryable error on the last attempt");
    check_exception<std::out_of_range>(o.exception(), "attempt 3", "the last error");
    check_exception<std::out_of_range>(thrown_by([&] { l.execute(p, failing); }), "attempt 3", "what execute throws");

    const auto returned = l.run(p, [](attempt&) -> result<int> { return fail(errc::not_found, "no such thing"); });
    check_equal(returned.attempt_count(), 1, "attempts that end with a returned failure");
    check_equal(returned.stop_reason(), stop_reason::rule, "stop reason of a returned failure");
    check(returned.has_value() && !returned.succeeded(), "a returned failure is a value, and no success");
    check_equal((*returned).error().message, "no such thing", "the returned failure");
}

void rules_agree(lab& l) {
    const auto p = l.add(
        {.name = "codes", .retry = {.max_attempts = 2, .delay = 1ms}, .rules = {retry_on(reset), stop_on(denied)}});
    for (const std::errc code : {reset, denied}) {
        const int expected = code == reset ? 3 : 1;
        const auto reason = code == reset ? stop_reason::exhausted : stop_reason::rule;
        const auto thrown = l.run(p, [=](attempt&) -> int { throw std::system_error(std::make_error_code(code)); });
        check_equal(thrown.attempt_count(), expected, "attempts that throw the code");
        check_equal(thrown.stop_reason(), reason, "stop reason of a thrown code");
        const auto plain = l.run(p, [=](attempt&) { return std::make_error_code(code); });
        check_equal(plain.attempt_count(), expected, "attempts that return the code");
        check_equal(plain.stop_reason(), reason, "stop reason of a returned code");
        const auto wrapped = l.run(p, [=](attempt&) -> std::expected<int, std::error_code> {
            return std::unexpected(std::make_error_code(code));
        });
        check_equal(wrapped.attempt_count(), expected, "attempts that return a result with the code");
        check_equal(wrapped.stop_reason(), reason, "stop reason of a result");
    }
    const auto before = l.add({.name = "before",
                               .retry = {.max_attempts = 2, .delay = 1ms},
                               .rules = {stop_on<worse_a>(), retry_on<error_a>()}});
    const auto after = l.add({.name = "after",
                              .retry = {.max_attempts = 2, .delay = 1ms},
                              .rules = {retry_on<error_a>(), stop_on<worse_a>()}});
    const auto any = l.add({.name = "any",
                            .retry = {.max_attempts = 2, .delay = 1ms},
                            .rules = {retry_when([](const failure& f) { return !f.is_value(); }), stop_on<worse_a>()}});
    for (const auto& each : {before, after, any}) {
        check_equal(l.run(each, [](attempt&) -> int { throw worse_a(); }).attempt_count(), 1,
                    "attempts when a stop rule matches");
        check_equal(l.run(each, [](attempt&) -> int { throw error_a(); }).attempt_count(), 3,
                    "attempts when only a retry rule does");
    }
}

struct answer {
    std::shared_ptr<int> number;
    bool good = false;
};

void bad_results(lab& l) {
    const auto p = l.add(
        {.name = "results", .retry = {.max_attempts = 3, .delay = 1ms}, .rules = {retry_when([](const failure& f) {
                                                                            const auto* v = f.value<answer>();
                                                                            return v != nullptr && !v->good;
                                                                        })}});
    std::vector<std::weak_ptr<int>> given;
    const auto bad = [&](attempt& a) {
        for (const auto& earlier : given)
            check(earlier.expired(), "an earlier result is destroyed before the next attempt");
        auto number = std::make_shared<int>(a.number());
        given.push_back(number);
        return answer{std::move(number), false};
    };
    const auto o = l.run(p, bad);
    check_equal(given.size(), 4U, "calls");
    check(o.has_value(), "the last result comes back");
    check_equal(*o->number, 4, "the result that comes back");
    check_equal(o.stop_reason(), stop_reason::exhausted, "stop reason");
    given.clear();
    check_equal(*l.execute(p, bad).number, 4, "what execute gives");
    const auto better = l.run(p, [](attempt& a) { return answer{std::make_shared<int>(a.number()), a.number() == 2}; });
    check_equal(better.attempt_count(), 2, "attempts until a good result");
    check_equal(better.stop_reason(), stop_reason::succeeded, "stop reason of a good result");
}

void counters_per_rule(lab& l) {
    const auto p = l.add({.name = "counted",
                          .retry = {.max_attempts = 50, .delay = 1ms},
                          .rules = {retry_on<error_a>(1), retry_on<error_b>(5)}});
    const auto calls_for = [&](std::string series) {
        return l
            .run(p,
                 [series](attempt& a) -> int {
                     const auto at = static_cast<std::size_t>(a.number() - 1);
                     if (at >= series.size()) return 0;
                     if (series[at] == 'a') throw error_a();
                     throw error_b();
                 })
            .attempt_count();
    };
    check_equal(calls_for("aaaaaaaa"), 2, "calls when only A fails");
    check_equal(calls_for("bbbbbbbb"), 6, "calls when only B fails");
    check_equal(calls_for("abbbbb"), 7, "calls when each uses up its own");
    check_equal(calls_for("abbbbbabbb"), 7, "calls when A comes again after B");
    check_equal(calls_for("babbbbbbbb"), 7, "calls when A comes between");
    check_equal(calls_for("bbbbba"), 7, "calls when A comes last");
}

void throwing_callbacks(lab& l) {
    const policy_options base{.retry = {.max_attempts = 3, .delay = 1ms}, .concurrency = {.limit = 1}};
    auto retry_rule = base, stop_rule = base, generator = base;
    retry_rule.name = "retry-rule";
    retry_rule.rules = {
        retry_when([](const failure& f) -> bool { return f.is_value() ? false : throw predicate_error("rule"); })};
    stop_rule.name = "stop-rule";
    stop_rule.rules = {
        stop_when([](const failure& f) -> bool { return f.is_value() ? false : throw predicate_error("rule"); })};
    generator.name = "generator";
    generator.retry.delay_for = [](const failure&, int) -> std::optional<duration> { throw predicate_error("rule"); };
    for (const auto& each : {retry_rule, stop_rule, generator}) {
        const auto p = l.add(each);
        int calls = 0;
        const auto failing = [&](attempt&) -> int {
            ++calls;
            throw error_a();
        };
        const auto o = l.run(p, failing);
        check_equal(calls, 1, "calls under " + std::string(each.name));
        check_exception<predicate_error>(o.exception(), "rule", "the error under " + std::string(each.name));
        check_exception<predicate_error>(thrown_by([&] { l.execute(p, failing); }), "rule", "what execute throws");
        check_equal(p.stats().running, 0, "slots still held");
        check_equal(*l.run(p, [](attempt&) { return 7; }), 7, "the next call");
    }
}

void many_inline_failures(lab& l) {
    constexpr int failures = 1'000'000;
    const auto p =
        l.add({.name = "inline", .retry = {.max_attempts = failures, .delay = 0ms}, .rules = {retry_on(reset)}});
    std::uintptr_t lowest = UINTPTR_MAX, highest = 0;
    const auto thread = std::this_thread::get_id();
    const auto o = l.run(p, [&](attempt& a) -> std::expected<int, std::error_code> {
        if (std::this_thread::get_id() == thread) {
            const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
            lowest = std::min(lowest, here);
            highest = std::max(highest, here);
        }
        if (a.number() <= failures) return std::unexpected(std::make_error_code(reset));
        return a.number();
    });
    check(o.succeeded(), "the series ends with a success");
    check_equal(**o, failures + 1, "calls");
    if (highest > lowest) check(highest - lowest < 65'536, "the stack does not grow from attempt to attempt");
    check_equal(l.now(), duration::zero(), "virtual time that passed");

    auto moved = l.run(p, [](attempt&) { return std::make_unique<int>(5); });
    check_equal(**moved, 5, "a move-only result");
    check_equal(*l.execute(p, [](attempt&) { return std::make_unique<int>(6); }), 6, "a move-only result of execute");
    int calls = 0;
    const auto nothing = l.run(p, [&](attempt&) {
        if (++calls < 3) throw error_a();
    });
    check(nothing.succeeded() && calls == 3, "a void function is tried again and succeeds");
    l.execute(p, [&](attempt&) { ++calls; });
    check_equal(calls, 4, "calls of the void function");
}

} // namespace

test_group attempts_group() {
    return {"attempts",
            {
                {1, "without retries the function is called once and nothing sleeps", no_retries},
                {2, "N retries are N+1 calls, and an unlimited counter never wraps", n_retries},
                {3, "a non-retryable error comes back unchanged, a retryable one on the last attempt is exhausted",
                 what_comes_back},
                {4, "a stop rule beats a retry rule, the same for exception, error code and result", rules_agree},
                {5, "a bad result on the last attempt is returned, earlier ones are destroyed before the next attempt",
                 bad_results},
                {6, "counters of different rules neither add up nor reset each other", counters_per_rule},
                {7, "a throwing predicate or delay generator surfaces unchanged and every permit is released",
                 throwing_callbacks},
                {8, "a million inline failures do not grow the stack, and move-only and void results work",
                 many_inline_failures},
            }};
}

} // namespace holdfast::conformance
