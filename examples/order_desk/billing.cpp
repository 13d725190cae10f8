#include "billing.hpp"

#include <chrono>
#include <string>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

#include "ledger.hpp"
#include "order_placed.hpp"

using namespace std::chrono_literals;

namespace {

// [bill]
// The invoice and the note that this event was received are one commit of billing's own database. Killed before it, the
// event comes again; killed after it, it comes again as well, and is recognised. It blocks, so it runs on the blocking pool.
void bill(holdfast::host& host, const std::filesystem::path& file, const order_placed& order,
          const holdfast::event_context& context) {
    ledger mine(file);
    transaction own(mine);
    const auto unit = sync_wait(host.runtime(), host.store().join(holdfast::native_transaction::of(mine.handle())));
    if (!unit) throw holdfast::failed(unit.error()); // the exception policies say what becomes of it
    const auto first =
        sync_wait(host.runtime(), host.outbox().receive("billing", context.event_id(), 7 * 24h, unit->get()));
    if (!first) throw holdfast::failed(first.error());

    if (*first)
        mine.insert("INSERT INTO invoices(number, customer, cents) VALUES(?, ?, ?)",
                    {std::to_string(order.number), order.customer, std::to_string(order.cents)});
    own.commit();
}
// [/bill]

} // namespace

int run_billing(const std::filesystem::path& config, const std::filesystem::path& file) {
    auto host = holdfast::host::from_file(config);
    ledger(file).run("CREATE TABLE IF NOT EXISTS invoices(number INTEGER, customer TEXT, cents INTEGER)");
    // [consume]
    const auto handle = [&](const order_placed& order, holdfast::event_context& context) {
        bill(host, file, order, context);
    };
    host.add_consumer<order_placed>("billing", handle, {.inbox = false, .max_crashes = 1000, .from_start = true});
    return host.run(); // until SIGTERM
    // [/consume]
}
