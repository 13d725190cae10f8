// An event on both planes: a domain consumer runs inside the publisher's unit of work, an integration consumer after its
// commit. Both plugins keep everything in memory; with "sqlite" and "redis" in their place the event outlives the program.
#include <chrono>
#include <future>
#include <iostream>
#include <string>

#include <holdfast/host.hpp>
#include <holdfast/json.hpp>
#include <holdfast/sync_wait.hpp>

// [event]
struct order_placed {
    static constexpr holdfast::event_options options{.name = "order.placed"};
    std::string order;
    int cents = 0;

    std::string event_key() const { return order; } // optional: events of one key arrive in order
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (order, cents))
// [/event]

namespace {

// [publish]
holdfast::task<void> place(holdfast::host& host, order_placed order) {
    auto unit = co_await host.store().begin();
    if (!unit) throw holdfast::failed(unit.error());
    co_await host.events().raise(**unit, order); // domain consumers, here and now; throws if one fails
    auto published = co_await host.events().publish(**unit, order); // recorded, for after the commit
    if (!published) throw holdfast::failed(published.error());
    std::cout << "commit" << std::endl;
    auto committed = co_await (*unit)->commit(); // a rollback would deliver nothing
    if (!committed) throw holdfast::failed(committed.error());
}
// [/publish]

void run() {
    std::promise<void> billed;
    // [run]
    auto host = holdfast::host::from_text("[store]\nplugin = \"memory\"\n[events]\nplugin = \"memory\"\n");
    host.add_domain_consumer<order_placed>("stock",
                                           [](const order_placed&) { std::cout << "stock: one less" << std::endl; });
    host.add_consumer<order_placed>("billing", [&](order_placed order) {
        std::cout << "billing: " << order.cents << " cents for " << order.order << std::endl;
        billed.set_value();
    });
    host.start(); // from here on this process relays and consumes

    sync_wait(host.runtime(), place(host, {"A-7", 1999}));
    // [/run]
    billed.get_future().wait();
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
