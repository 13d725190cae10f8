// A flaky service, called in three ways at the same time: bare, with retries and timeouts, and with a circuit breaker on
// top. The last is told of live; a table compares them. Exit code 0: the policies did what they promise.
#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <holdfast/host.hpp>
#include <holdfast/policy_config.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task_scope.hpp>

#include "flaky_service.hpp"
#include "narrator.hpp"
#include "scoreboard.hpp"

namespace {

using namespace std::chrono_literals;
using namespace demo;

// [policy]
inline constexpr auto orders = holdfast::policy({
    .name = "orders",
    .retry = {.max_attempts = 3, .delay = 40ms, .backoff = holdfast::backoff::exponential, .jitter = true},
    .timeout = 150ms,
    .breaker = {.failure_ratio = 0.7, .window = 1s, .min_throughput = 10, .break_for = 500ms, .probes = 2},
});
// [/policy]
inline constexpr auto orders_without_breaker = holdfast::policy({
    .name = "orders-without-breaker",
    .retry = orders.options().retry,
    .timeout = orders.options().timeout,
});

constexpr int callers = 4;
constexpr holdfast::duration between_calls = 220ms; // of one caller, whatever becomes of the last call

// One way of calling, with a service of its own that plays the same story.
struct contestant {
    contestant(std::string title, holdfast::host& host, holdfast::time_point opening)
        : on(host.runtime()), policies(host.policies()), service(on, opening), result(std::move(title)) {}

    holdfast::runtime& on;
    holdfast::policies& policies;
    flaky_service service;
    score result;
};

holdfast::task<void> call_bare(contestant& c, int request) {
    const auto began = c.on.now();
    bool answered = true;
    try {
        co_await c.service.answer(request, 1, {});
    } catch (const std::exception&) {
        answered = false;
    }
    c.result.add(answered, c.on.now() - began);
}

holdfast::task<void> call_under(const holdfast::policy& p, contestant& c, int request) {
    const auto began = c.on.now();
    const auto outcome = co_await c.policies.try_execute(
        p, [&c, request](holdfast::attempt& a) { return c.service.answer(request, a.number(), a.stop_token()); });
    c.result.add(outcome, c.on.now() - began);
}

struct stage {
    explicit stage(holdfast::host& on) : host(on) {}

    holdfast::host& host;
    holdfast::time_point opening = host.runtime().now();
    std::shared_ptr<narrator> teller = std::make_shared<narrator>(orders.name(), opening);
    contestant bare{"no policy", host, opening};
    contestant retrying{"without breaker", host, opening};
    contestant breaking{"with breaker", host, opening};
};

// Starts a call every so often; all three ways get the same requests at the same time.
holdfast::task<void> one_caller(stage& s, int caller) {
    holdfast::task_scope calls;
    auto next = s.opening + caller * between_calls / callers;
    for (int request = caller; next < s.opening + end_of_story; request += callers, next += between_calls) {
        co_await holdfast::sleep_until(s.host.runtime(), next);
        calls.spawn(call_bare(s.bare, request));
        calls.spawn(call_under(orders_without_breaker, s.retrying, request));
        calls.spawn(call_under(orders, s.breaking, request));
    }
    co_await calls.join();
}

holdfast::task<void> tell_the_story(stage& s) {
    auto next = story.begin();
    for (auto at = s.opening; at <= s.opening + end_of_story; at += 500ms) {
        co_await holdfast::sleep_until(s.host.runtime(), at);
        s.teller->pulse(at);
        if (next == story.end() || at < s.opening + next->from) continue;
        s.teller->announce(next->title, at);
        ++next;
    }
}

holdfast::task<void> perform(stage& s) {
    holdfast::task_scope everybody;
    everybody.spawn(tell_the_story(s));
    for (int caller = 0; caller < callers; ++caller) everybody.spawn(one_caller(s, caller));
    co_await everybody.join();
    s.teller->pulse(s.host.runtime().now());
}

// The truth, for the exit code.
bool judge(stage& s) {
    bool all_hold = true;
    const auto check = [&](bool holds, const std::string& promise) {
        std::printf("  %s %s\n", painted(holds ? "[ok]" : "[NO]", holds ? colour::green : colour::red).c_str(),
                    promise.c_str());
        all_hold = all_hold && holds;
    };
    const score& bare = s.bare.result;
    const score& retrying = s.retrying.result;
    const score& breaking = s.breaking.result;
    bool accounted = true;
    for (const score* each : {&bare, &retrying, &breaking})
        accounted = accounted && each->calls() == bare.calls() &&
                    each->calls() == each->answered() + each->refused() + each->failed() &&
                    each->attempts() == each->sent;

    check(accounted, "every call ended once, and every attempt that was counted reached the service");
    check(breaking.answered() > bare.answered(), "with the policy " +
                                                     std::to_string(breaking.answered() - bare.answered()) +
                                                     " more calls were answered than without");
    check(s.teller->times_opened() > 0 && s.teller->times_closed() > 0 &&
              s.host.policies().bind(orders).circuit() == holdfast::circuit_state::closed,
          "the circuit opened, and it is closed again");
    check(breaking.sent_sick * 2 < retrying.sent_sick,
          "the breaker kept " + std::to_string(retrying.sent_sick - breaking.sent_sick) + " of " +
              std::to_string(retrying.sent_sick) + " requests away from the service while it was down");
    check(breaking.waited_in_vain() < retrying.waited_in_vain(),
          "callers behind it waited " + in_seconds(breaking.waited_in_vain()) + " for nothing, without it " +
              in_seconds(retrying.waited_in_vain()));
    return all_hold;
}

void introduce(holdfast::host& host) {
    std::printf("%d callers, a call every %s each, %s in all, to a service that has a bad day; on the runtime %s.\n"
                "What you see live is this policy:\n\n",
                callers, holdfast::to_short_text(between_calls).c_str(), holdfast::to_short_text(end_of_story).c_str(),
                std::string(host.runtime().name()).c_str());
    for (const auto& [key, value] : holdfast::describe_policy(orders.options()))
        std::printf("  %-8s %s\n", key.c_str(), value.c_str());
    std::printf("\n");
}

int run() {
    auto host = holdfast::host::from_text("[runtime]\nplugin = \"asio\"\nthreads = 2\n", "demo");
    host.add(orders, orders_without_breaker);
    host.start();

    introduce(host);
    stage s(host);
    host.policies().runner().listen(s.teller);
    sync_wait(host.runtime(), perform(s));

    for (contestant* each : {&s.bare, &s.retrying, &s.breaking}) {
        each->result.sent = each->service.requests();
        each->result.sent_sick = each->service.requests_while_down();
    }
    print_table(std::array<const score*, 3>{&s.bare.result, &s.retrying.result, &s.breaking.result});
    const bool good = judge(s);
    std::printf("\n%s\n", good ? painted("held fast: every promise was kept", colour::green).c_str()
                               : painted("a promise was broken: see [NO] above", colour::red).c_str());
    return good ? 0 : 1;
}

} // namespace

int main() {
    try {
        return run();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
}
