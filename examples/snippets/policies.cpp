// What docs/policies.md quotes.
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/lint.hpp>
#include <holdfast/resilient.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

// [everything]
inline constexpr auto payment = holdfast::policy({
    .name = "payment",
    .retry = {.max_attempts = 4, .delay = 200ms, .backoff = holdfast::backoff::exponential, .max_delay = 10s},
    .timeout = 2s,
    .total_timeout = 30s,
    .breaker = {.failure_ratio = 0.5, .window = 30s, .min_throughput = 20, .break_for = 5s, .probes = 2},
    .concurrency = {.limit = 50, .queue = 100},
    .rate = {.permits = 200, .per = 1s, .burst = 20},
    .budget = {.ratio = 0.1, .reserve = 5},
    .fallback = holdfast::fallback_when::rejected_only,
});
// [/everything]

struct receipt {
    int number = 0;
};
struct declined : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct busy : std::runtime_error {
    using std::runtime_error::runtime_error;
};

receipt charge(std::stop_token) {
    return {7};
}
holdfast::task<receipt> charge_async(std::stop_token) {
    co_return receipt{7};
}

holdfast::task<void> coroutine_forms(holdfast::policies& policies) {
    // [coroutine]
    receipt r = co_await policies.execute(payment, [](holdfast::attempt& a) { return charge_async(a.stop_token()); });
    auto outcome = co_await policies.try_execute(payment, charge_async);
    // [/coroutine]
    check(r.number == 7 && outcome.succeeded(), "coroutine forms");
}

void forms(holdfast::policies& policies, std::stop_token stop) {
    // [forms]
    // The function takes an attempt&, a std::stop_token, or nothing.
    receipt r = policies.execute(payment, [](holdfast::attempt& a) { return charge(a.stop_token()); });

    auto outcome = policies.try_execute(payment, charge); // never throws what went wrong: look at it
    if (!outcome) std::printf("%s: %s\n", to_text(outcome.stop_reason()).data(), outcome.error().message.c_str());

    policies.execute(payment, charge, stop);           // the caller may cancel
    policies.execute("payment", charge);               // by a name that is known only at run time
    policies.bind(payment, "eu-west").execute(charge); // own breaker, limits and budget for this key
    // [/forms]
    check(r.number == 7 && outcome.succeeded(), "forms");
}

void with_fallback(holdfast::policies& policies, std::vector<receipt> cache) {
    // [fallback]
    policies.bind(payment).isolate_circuit(); // by hand, until close_circuit()
    const auto from_cache = [&](const holdfast::execution_report& why) {
        check(why.stop_reason() == holdfast::stop_reason::circuit_open, "the report says why");
        return cache.front();
    };
    receipt r = policies.execute(payment, charge, holdfast::fallback(from_cache));
    // [/fallback]
    check(r.number == 1, "fallback");
    policies.bind(payment).close_circuit();
}

// [rules]
inline constexpr auto card = holdfast::policy({
    .name = "card",
    .retry = {.max_attempts = 5, .delay = 100ms},
    .rules = {holdfast::stop_on<declined>(), holdfast::retry_on<busy>(2),
              holdfast::retry_on(std::errc::connection_reset)},
});
// [/rules]

void rules(holdfast::policies& policies) {
    int calls = 0;
    auto o = policies.try_execute(card, [&]() -> int {
        ++calls;
        throw declined("no money");
    });
    check(calls == 1 && o.stop_reason() == holdfast::stop_reason::rule, "stop_on stops");
    calls = 0;
    o = policies.try_execute(card, [&]() -> int {
        ++calls;
        throw busy("later");
    });
    check(calls == 3 && o.stop_reason() == holdfast::stop_reason::exhausted, "two retries for busy");
    calls = 0;
    o = policies.try_execute(card, [&]() -> int {
        ++calls;
        throw std::system_error(std::make_error_code(std::errc::connection_reset));
    });
    check(calls == 6, "a code is retried as often as the policy says");
}

// [results]
bool not_ready(const holdfast::failure& f) {
    const auto* answer = f.value<holdfast::result<int>>();
    return answer != nullptr && answer->has_value() && **answer == 202;
}

inline constexpr auto lookup = holdfast::policy({
    .name = "lookup",
    .retry = {.max_attempts = 3, .delay = 50ms},
    .rules = {holdfast::retry_on(holdfast::errc::unavailable), holdfast::retry_when(not_ready)},
});

holdfast::result<int> ask(int attempt) {
    if (attempt == 1) return holdfast::fail(holdfast::errc::unavailable, "no connection"); // a value, not an exception
    return attempt == 2 ? 202 : 200;
}
// [/results]

void results(holdfast::policies& policies) {
    const auto answer = policies.execute(lookup, [](holdfast::attempt& a) { return ask(a.number()); });
    check(answer.has_value() && *answer == 200, "results are retried where a rule says so");
}

void retry_after(holdfast::policies& policies, holdfast::simulated_runtime& time) {
    const auto began = time.now();
    // [retry-after]
    policies.execute(card, [](holdfast::attempt& a) {
        if (a.number() > 1) return receipt{7};
        a.retry_after(3s); // the other side said so; kept within max_delay and the deadline
        throw busy("429");
    });
    // [/retry-after]
    check(time.now() - began == 3s, "the hint is followed");
}

// [resilient]
receipt settle(int order, holdfast::attempt& a) {
    return {order + a.number()};
}
inline constexpr auto settle_order = holdfast::resilient(payment, settle); // data and code; nothing is bound yet

void use_handler(holdfast::policies& policies) {
    auto call = settle_order.on(policies); // an unknown policy is an error here
    check(call(41).number == 42, "called like the handler itself");
}
// [/resilient]

// [listener]
class retry_counter final : public holdfast::execution_listener {
public:
    void on_event(const holdfast::execution_event& e) override {
        if (e.kind == holdfast::event_kind::retry_scheduled) ++retries;
    }
    int retries = 0;
};
// [/listener]

void listening(holdfast::policies& policies) {
    // [listen]
    auto counter = std::make_shared<retry_counter>();
    policies.runner().listen(counter); // for good, for all policies
    // [/listen]
    policies.try_execute(card, []() -> int { throw busy("later"); });
    check(counter->retries == 2, "the listener hears retries");
}

void reloading(holdfast::engine& engine) {
    // [replace]
    holdfast::policy_options changed = payment.options();
    changed.timeout = 5s;
    const auto replaced = engine.catalog().replace({changed}); // all of them, or none and the reason
    // [/replace]
    check(replaced.has_value() && engine.policies().bind(payment).options().timeout == 5s, "replaced");
}

} // namespace

int main() {
    holdfast::simulated_runtime time;
    holdfast::engine engine(time, 1);
    engine.add(payment, card, lookup);
    auto& policies = engine.policies();
    forms(policies, {});
    sync_wait(time, coroutine_forms(policies));
    with_fallback(policies, {receipt{1}});
    rules(policies);
    results(policies);
    retry_after(policies, time);
    use_handler(policies);
    listening(policies);
    reloading(engine);
    std::puts("ok");
}
