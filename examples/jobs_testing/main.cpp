// Testing jobs: what the code enqueues, what the handlers do, and what becomes of a job that fails for a day. No server,
// no sleeping; any test framework will do, here it is none.
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

#include <holdfast/job_lab.hpp>
#include <holdfast/json.hpp>

using namespace std::chrono_literals;

namespace {

void check(bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
}

} // namespace

// [under-test]
struct send_invoice {
    static constexpr holdfast::job_options options{
        .name = "invoice.send", .queue = "mail", .attempts = 4, .retry = {.delay = 1h, .jitter = false}};
    std::string invoice_id;
    std::string to;
};
BOOST_DESCRIBE_STRUCT(send_invoice, (), (invoice_id, to))

struct bad_address : holdfast::non_retryable_error {
    using non_retryable_error::non_retryable_error;
};

struct mailer {
    int outages = 0; // attempts that find the server down
    int sent = 0;

    holdfast::task<void> send(send_invoice job, holdfast::job_context& context) {
        co_await context.sleep_for(2s); // what the server takes
        if (job.to.empty()) throw bad_address("invoice " + job.invoice_id + " has no address");
        if (outages-- > 0) throw std::runtime_error("mail server down");
        ++sent;
        context.output("sent as " + context.idempotency_key());
    }
};

holdfast::task<void> close_order(holdfast::jobs& jobs, std::string number, std::string customer) {
    const holdfast::enqueue_options options{.after = 10min, .unique_key = "order-" + number};
    auto queued = co_await jobs.enqueue(send_invoice{"INV-" + number, customer}, options);
    if (!queued) throw holdfast::failed(queued.error());
}
// [/under-test]

namespace {

void what_is_enqueued() {
    // [enqueued]
    holdfast::job_lab lab;
    lab.wait(close_order(lab.jobs(), "7", "a@example.org"));
    lab.wait(close_order(lab.jobs(), "7", "a@example.org"));

    const auto mails = lab.enqueued<send_invoice>();
    check(mails.size() == 1, "closing an order twice sends one invoice");
    check(mails[0].job.to == "a@example.org", "to the customer");
    check(mails[0].record.queue == "mail", "through the mail queue");
    check(mails[0].record.due_at - mails[0].record.created == 10min, "in ten minutes");
    // [/enqueued]
}

void what_the_handler_does() {
    // [inline]
    holdfast::job_lab lab;
    mailer smtp;
    lab.add<send_invoice>([&](send_invoice job, holdfast::job_context& c) { return smtp.send(std::move(job), c); });

    const auto run = lab.run(send_invoice{"INV-7", "a@example.org"});
    check(run.returned.has_value() && smtp.sent == 1, "the mail went out");
    check(run.output.starts_with("sent as "), "and its number is kept");
    // [/inline]
}

void a_day_of_outage() {
    // [retries]
    holdfast::job_lab lab;
    mailer smtp{.outages = 2};
    lab.add<send_invoice>([&](send_invoice job, holdfast::job_context& c) { return smtp.send(std::move(job), c); });
    lab.wait(close_order(lab.jobs(), "7", "a@example.org"));

    check(lab.drain().total() == 0, "nothing is due yet");
    lab.advance(10min);
    check(lab.drain() == holdfast::drained{.retried = 1}, "the first attempt fails");
    check(lab.enqueued<send_invoice>()[0].record.state == holdfast::job_state::waiting_retry, "it will come again");
    check(lab.run_until_done() == holdfast::drained{.succeeded = 1, .retried = 1}, "hours later it went out");
    check(smtp.sent == 1, "once");
    // [/retries]
}

void a_dead_letter() {
    // [dead]
    holdfast::job_lab lab;
    mailer smtp;
    lab.add<send_invoice>([&](send_invoice job, holdfast::job_context& c) { return smtp.send(std::move(job), c); });
    lab.wait(close_order(lab.jobs(), "8", ""));
    lab.advance(10min);
    lab.drain();

    const auto dead = lab.list({.state = holdfast::job_state::dead_letter});
    check(dead.size() == 1 && dead[0].attempts == 1, "an error that is not tried again ends it at once");
    check(dead[0].last_error.message == "invoice INV-8 has no address", "and the reason is kept");
    // [/dead]
}

} // namespace

int main() {
    try {
        what_is_enqueued();
        what_the_handler_does();
        a_day_of_outage();
        a_dead_letter();
    } catch (const std::exception& e) {
        std::cerr << "failed: " << e.what() << "\n";
        return 1;
    }
    std::cout << "a day of jobs, tested\n";
    return 0;
}
