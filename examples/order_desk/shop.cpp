#include "shop.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

#include "ledger.hpp"
#include "order_placed.hpp"

using namespace std::chrono_literals;

namespace {

// [place]
// The order and its event are one commit: there is no order without an event, and no event without an order.
holdfast::task<void> place(holdfast::host& host, ledger& mine, order_placed order, bool declined) {
    transaction own(mine);
    mine.insert("INSERT INTO orders(number, customer, cents) VALUES(?, ?, ?)",
                {std::to_string(order.number), order.customer, std::to_string(order.cents)});

    auto unit = co_await host.store().join(holdfast::native_transaction::of(mine.handle()));
    if (!unit) throw holdfast::failed(unit.error());
    auto published = co_await host.events().publish(**unit, order);
    if (!published) throw holdfast::failed(published.error());

    if (declined) co_return; // rolled back, with the event
    own.commit();
}
// [/place]

bool is_declined(int number) {
    return number % 7 == 0;
}

} // namespace

int run_shop(const std::filesystem::path& config, const std::filesystem::path& file, int orders) {
    auto host = holdfast::host::from_file(config);
    host.start(); // from here on it also relays what is in its outbox
    ledger mine(file);
    mine.run("CREATE TABLE IF NOT EXISTS orders(number INTEGER PRIMARY KEY, customer TEXT, cents INTEGER)");
    mine.run("CREATE TABLE IF NOT EXISTS declined(number INTEGER PRIMARY KEY)");
    const long long before = mine.number("SELECT max((SELECT coalesce(max(number), 0) FROM orders), "
                                         "(SELECT coalesce(max(number), 0) FROM declined))");
    for (int number = static_cast<int>(before) + 1; number <= orders; ++number) {
        const order_placed order{number, "customer-" + std::to_string(number % 10), 100 + number};
        sync_wait(host.runtime(), place(host, mine, order, is_declined(number)));
        if (is_declined(number)) mine.insert("INSERT INTO declined(number) VALUES(?)", {std::to_string(number)});
        std::this_thread::sleep_for(5ms);
    }
    while (sync_wait(host.runtime(), host.outbox().unsent()).value_or(1) > 0) std::this_thread::sleep_for(10ms);
    return 0;
}
