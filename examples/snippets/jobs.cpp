// What docs/jobs.md quotes.
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/job_lab.hpp>
#include <holdfast/json.hpp>
#include <holdfast/run_or_enqueue.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

// [declare]
struct bad_address : holdfast::non_retryable_error {
    using non_retryable_error::non_retryable_error;
};

struct send_invoice {
    static constexpr holdfast::job_options options{
        .name = "invoice.send", // what stores call it: it stays when the struct is renamed
        .queue = "mail",
        .priority = 5,
        .attempts = 5,
        .retry = {.delay = 30s, .max_delay = 1h},
        .rules = {holdfast::stop_on(holdfast::errc::invalid_argument)},
        .timeout = 1min,
        .hard_deadline = 10min,
        .restart = holdfast::restart::never,
        .keep_for = 24h,
        .version = 2,
    };
    std::string invoice_id;
    std::string to;
    std::vector<std::string> cc; // since version 2: older payloads lack it, and it stays empty

    std::string unique_key() const { return invoice_id; } // optional: at most one unfinished job has it
};
BOOST_DESCRIBE_STRUCT(send_invoice, (), (invoice_id, to, cc))
// [/declare]

namespace {

struct {
    int sent = 0;
    holdfast::task<void> send(std::string, std::string, std::stop_token) {
        ++sent;
        co_return;
    }
} smtp;

} // namespace

// [handle]
holdfast::task<void> handle(send_invoice job, holdfast::job_context& context) {
    if (job.to.empty()) throw bad_address(job.invoice_id + " has no address"); // never tried again
    context.progress(10, "connecting");
    co_await smtp.send(job.to, context.idempotency_key(), context.stop_token());
    context.log().info("sent " + job.invoice_id);
    context.output("accepted");
}
// [/handle]

// [charge]
struct charge {
    static constexpr holdfast::job_options options{
        .name = "card.charge", .attempts = 1, .restart = holdfast::restart::probe};
    std::string card;
    int cents = 0;
};
BOOST_DESCRIBE_STRUCT(charge, (), (card, cents))

holdfast::result<void> take_money(charge job, holdfast::job_context& context);
holdfast::happened was_money_taken(charge job, holdfast::job_context& context); // asks the bank by idempotency_key()
// [/charge]

holdfast::result<void> take_money(charge job, holdfast::job_context&) {
    if (job.cents <= 0) return holdfast::fail(holdfast::errc::invalid_argument, "nothing to charge");
    return {};
}
holdfast::happened was_money_taken(charge, holdfast::job_context&) {
    return holdfast::happened::unknown;
}

// [bases]
struct touches_the_bank {
    static constexpr holdfast::restart restart_rule = holdfast::restart::never;
};
struct refund : touches_the_bank {
    static constexpr holdfast::job_options options{.name = "card.refund"}; // never restarted
    std::string card;
};
struct balance : touches_the_bank {
    static constexpr holdfast::job_options options{.name = "card.balance"};
    static constexpr holdfast::restart restart_rule = holdfast::restart::allowed; // the nearest declaration counts
    std::string card;
};
// [/bases]
BOOST_DESCRIBE_STRUCT(refund, (), (card))
BOOST_DESCRIBE_STRUCT(balance, (), (card))
static_assert(holdfast::restart_of<refund>() == holdfast::restart::never);
static_assert(holdfast::restart_of<balance>() == holdfast::restart::allowed);

namespace {

inline constexpr auto quick_mail =
    holdfast::policy({.name = "quick-mail", .retry = {.max_attempts = 2, .delay = 100ms}, .timeout = 2s});

holdfast::task<void> enqueue_forms(holdfast::jobs& jobs) {
    // [enqueue]
    auto queued = co_await jobs.enqueue(send_invoice{"INV-7", "a@example.org", {}});
    if (!queued) throw holdfast::failed(queued.error()); // not kept: say so to whoever asked

    const holdfast::enqueue_options later{.after = 10min, .priority = -5, .attempts = 10};
    queued = co_await jobs.enqueue(send_invoice{"INV-8", "b@example.org", {}}, later);

    const holdfast::enqueue_options then{.parent = queued->id}; // when INV-8 has been sent
    queued = co_await jobs.enqueue(send_invoice{"INV-9", "c@example.org", {}}, then);

    std::vector<send_invoice> many = {{"INV-10", "d@example.org", {}}, {"INV-11", "e@example.org", {}}};
    auto all = co_await jobs.enqueue_all(std::move(many)); // one write: all of them, or none
    // [/enqueue]
    check(queued && queued->created && all && all->size() == 2, "all of them were enqueued");
}

holdfast::task<void> in_a_unit(holdfast::store& store, holdfast::jobs& jobs) {
    // [unit]
    auto unit = co_await store.begin();
    if (!unit) throw holdfast::failed(unit.error());
    auto queued = co_await jobs.enqueue(**unit, send_invoice{"INV-12", "f@example.org", {}});
    auto committed = co_await (*unit)->commit(); // from here on it exists; before, nobody saw it
    // [/unit]
    check(queued && committed, "committed");
}

// Stands for a pqxx::transaction_base, or a sqlite3 that has begun one.
struct transaction {};

[[maybe_unused]] holdfast::task<void> in_your_own(holdfast::store& store, holdfast::jobs& jobs, transaction& mine) {
    // [own]
    auto unit = co_await store.join(holdfast::native_transaction::of(mine)); // PostgreSQL, SQLite
    if (!unit) throw holdfast::failed(unit.error());
    auto queued = co_await jobs.enqueue(**unit, send_invoice{"INV-12", "f@example.org", {}});
    if (!queued) throw holdfast::failed(queued.error());
    // …and you commit it yourself
    // [/own]
}

holdfast::task<void> steer(holdfast::jobs& jobs, holdfast::identifier id) {
    // [steer]
    auto asked = co_await jobs.cancel(id); // a running one hears of it with its worker's next heartbeat
    const holdfast::job_filter dead{.state = holdfast::job_state::dead_letter, .queue = "mail"};
    auto again = co_await jobs.requeue_all(dead); // how many; also requeue({id, …}), cancel_all, discard_all
    // [/steer]
    check(asked && again && *again == 0, "nothing is dead");
}

holdfast::task<void> two_tiers(holdfast::jobs& jobs, holdfast::policies& policies) {
    // [tiers]
    auto ended =
        co_await run_or_enqueue(jobs, policies.bind(quick_mail), handle, send_invoice{"INV-13", "g@example.org", {}});
    if (!ended) throw holdfast::failed(ended.error()); // the handler's own verdict, or it could not be enqueued
    const bool sent = !ended->later;                   // else a worker goes on with ended->later->id
    // [/tiers]
    check(sent, "it was sent at once");
}

} // namespace

int main() {
    holdfast::job_lab lab;
    lab.add(quick_mail);
    lab.add<send_invoice>(handle);
    lab.add<charge>(take_money, was_money_taken);
    lab.wait(enqueue_forms(lab.jobs()));
    check(lab.enqueued<send_invoice>().size() == 5, "five are waiting");
    lab.wait(in_a_unit(lab.store(), lab.jobs()));
    lab.wait(steer(lab.jobs(), lab.enqueued<send_invoice>().back().record.id));
    lab.wait(two_tiers(lab.jobs(), lab.policies()));
    check(lab.run_until_done().succeeded == 5, "five were run by the worker, one was cancelled");
    check(smtp.sent == 6, "and one at once");
    check(lab.run(charge{"4711", 100}).returned.has_value(), "charged");
    return 0;
}
