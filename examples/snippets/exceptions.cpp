// What docs/exception-policies.md quotes.
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include <holdfast/exception_decision.hpp>
#include <holdfast/exception_explain.hpp>
#include <holdfast/job_lab.hpp>
#include <holdfast/json.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

struct smtp_error : std::runtime_error {
    explicit smtp_error(int code) : std::runtime_error("smtp " + std::to_string(code)), code(code) {}
    bool transient() const noexcept { return code < 500; }
    int code;
};
struct bad_address : smtp_error {
    bad_address() : smtp_error(550) {}
};
struct already_sent : std::runtime_error {
    already_sent() : std::runtime_error("it was sent on Monday") {}
};

struct send_reminder {
    static constexpr holdfast::job_options options{.name = "reminder.send", .attempts = 4};
    std::string to;
};
BOOST_DESCRIBE_STRUCT(send_reminder, (), (to))

namespace {

holdfast::exception_policy mail_rules() {
    // [table]
    holdfast::exception_policy rules;
    rules.on<smtp_error>([](const smtp_error& e) { return e.transient(); }).retry(5, 200ms).then_redeliver();
    rules.on<bad_address>().dead_letter();
    rules.on<already_sent>().discard();
    rules.on(std::errc::connection_reset).retry();
    rules.default_().retry().then_redeliver().then_dead_letter();
    // [/table]
    return rules;
}

holdfast::exception_policy chains() {
    holdfast::exception_policy rules;
    // [chains]
    rules.on<std::range_error>().retry(3, 500ms, holdfast::backoff::linear);     // 500ms, 1s, 1.5s
    rules.on<std::overflow_error>().retry({100ms, 500ms, 2s});                   // exactly these
    rules.on<std::domain_error>().redeliver(5, 2min);                            // 2, 4, 8, 16, 32 minutes
    rules.on<std::length_error>().retry(5).then_redeliver({5min, 15min, 30min}); // exactly these
    rules.on(holdfast::errc::unavailable, holdfast::errc::overloaded).retry(2).then_dead_letter();
    rules.max_total_attempts(20);
    // [/chains]
    return rules;
}

holdfast::exception_table scoped(const holdfast::exception_policy& of_host) {
    // [scopes]
    holdfast::exception_policy of_consumer;
    of_consumer.on<bad_address>().discard();
    of_consumer.inherit(); // what it does not take is for the next scope outside

    const auto table = holdfast::resolve({.consumer = &of_consumer, .host = &of_host});
    // [/scopes]
    return table;
}

std::string explained(const holdfast::exception_table& table) {
    // [explain]
    const auto thrown = std::make_exception_ptr(smtp_error(451));
    std::string text = holdfast::explain(table, holdfast::failure::thrown(thrown));
    // [/explain]
    return text;
}

// [decide]
// Nothing: it is done. Else it goes where the decision says.
template <class Handler>
std::optional<holdfast::exception_decision> deliver(const holdfast::exception_table& table, Handler handler,
                                                    int redeliveries, int earlier_calls) {
    holdfast::exception_history so_far{.redeliveries = redeliveries, .calls = earlier_calls + 1};
    holdfast::random_series random(42);
    for (;;) {
        try {
            handler();
            return std::nullopt;
        } catch (...) {
            const auto thrown = std::current_exception();
            const auto next = decide(table, holdfast::failure::thrown(thrown), so_far, random);
            if (next.what != holdfast::exception_decision::action::retry) return next;
            so_far.add(next); // and wait for next.after
        }
    }
}
// [/decide]

int calls = 0;

holdfast::task<void> remind(send_reminder job) {
    ++calls;
    if (job.to.empty()) throw already_sent();
    throw smtp_error(451);
    co_return;
}

void declare(holdfast::job_lab& host) {
    // [job]
    holdfast::exception_policy rules;
    rules.on<smtp_error>().retry(2, 100ms).then_redeliver(3, 1min);
    rules.on<already_sent>().discard();
    host.add<send_reminder>(remind, rules);
    // [/job]
}

} // namespace

int main() {
    const auto rules = mail_rules();
    check(explained(holdfast::resolve({.consumer = &rules})) == R"(smtp_error: smtp 451
is taken by on<smtp_error>(predicate) of the consumer:
  retry 5 times, after 200ms, 400ms, 800ms, 1.6s, 3.2s with jitter
  redeliver 3 times, after 5m, 15m, 30m with jitter; each with 5 retries of its own
  then dead letter
  at most 24 calls, and 50.4m of waiting
)",
          "the explanation in the page");
    check(chains().rules().size() == 5, "five chains");
    check(scoped(rules).rules().size() == 6, "one of the consumer, five of the host");

    int made = 0;
    const auto next = deliver(holdfast::resolve({.consumer = &rules}), [&] { throw smtp_error(400 + ++made); }, 0, 0);
    check(next && next->what == holdfast::exception_decision::action::redeliver && made == 6, "six calls, then later");

    holdfast::job_lab lab;
    declare(lab);
    const auto enqueued = lab.wait(lab.jobs().enqueue(send_reminder{"a@example.org"}));
    check(lab.run_until_done().dead_lettered == 1 && calls == 12, "four attempts of three calls");
    check(enqueued.has_value(), "enqueued");
    check(lab.wait(lab.jobs().enqueue(send_reminder{""})).has_value(), "enqueued");
    check(lab.run_until_done().cancelled == 1, "and one discarded");
    return 0;
}
