// A job: enqueued, run by a worker, failed once, tried again. The store is the one that the configuration names; with
// "sqlite" in place of "memory" it outlives the program.
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <holdfast/host.hpp>
#include <holdfast/json.hpp>
#include <holdfast/sync_wait.hpp>

using namespace std::chrono_literals;

// [job]
struct send_invoice {
    static constexpr holdfast::job_options options{
        .name = "invoice.send", .queue = "mail", .attempts = 5, .retry = {.delay = 50ms}};
    std::string invoice_id;
    std::string to;
};
BOOST_DESCRIBE_STRUCT(send_invoice, (), (invoice_id, to))

holdfast::task<void> handle(send_invoice job, holdfast::job_context& context) {
    std::cout << "attempt " << context.attempt() << " of " << context.max_attempts() << ": ";
    if (context.attempt() == 1) {
        std::cout << "mail server busy\n";
        throw std::runtime_error("mail server busy");
    }
    std::cout << "sent " << job.invoice_id << " to " << job.to << "\n";
    context.output("accepted");
    co_return;
}
// [/job]

namespace {

// Asks the store until the job has ended. A program that only enqueues has no need to.
holdfast::job_view wait_for(holdfast::host& host, holdfast::identifier id) {
    for (;;) {
        const auto found = sync_wait(host.runtime(), host.jobs().get(id));
        if (!found) throw holdfast::failed(found.error());
        const auto& job = std::get<holdfast::job_view>(*found);
        if (is_final(job.state)) return job;
        std::this_thread::sleep_for(5ms);
    }
}

void run() {
    // [run]
    auto host = holdfast::host::from_text("[store]\nplugin = \"memory\"\n");
    host.add<send_invoice>(handle);
    host.start(); // from here on this process runs such jobs

    const auto queued = sync_wait(host.runtime(), host.jobs().enqueue(send_invoice{"INV-7", "a@example.org"}));
    if (!queued) throw holdfast::failed(queued.error());

    const auto ended = wait_for(host, queued->id);
    std::cout << to_text(ended.state) << ": " << ended.output << "\n";
    // [/run]
}

} // namespace

int main() {
    try {
        run();
        return 0;
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
