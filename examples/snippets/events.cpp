// What docs/events.md quotes.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/json.hpp>
#include <holdfast/sync_wait.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

// [event]
struct order_placed {
    static constexpr holdfast::event_options options{
        .name = "order.placed", // its topic: it stays when the struct is renamed
        .version = 2,           // written beside the bytes
    };
    std::string order;
    int cents = 0;
    std::string coupon; // since version 2: older events lack it, and it stays empty

    std::string event_key() const { return order; } // optional: events of one key arrive in order
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (order, cents, coupon))
// [/event]

struct ship_order {
    static constexpr holdfast::job_options options{.name = "order.ship"};
    std::string order;
};
BOOST_DESCRIBE_STRUCT(ship_order, (), (order))

namespace {

struct mailbox_full : std::runtime_error {
    using runtime_error::runtime_error;
};

std::atomic<int> mails = 0;
std::atomic<int> shipped = 0;

template <class T>
T value_of(holdfast::result<T> answer) {
    if (!answer) throw holdfast::failed(std::move(answer.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

// [handlers]
// At least once. What is known to be a duplicate does not come; what must not happen twice takes the event's id.
void send_mail(order_placed order, holdfast::event_context& context) {
    context.log().info("mail " + to_text(context.event_id()) + " for " + order.order);
    ++mails; // … smtp.send(…, idempotency key = event_id, context.stop_token())
}

// Exactly once, for what is written to the unit: it is committed together with the note that the event was received.
holdfast::task<void> start_shipping(holdfast::jobs& jobs, order_placed order, holdfast::unit_of_work& unit) {
    value_of(co_await jobs.enqueue(unit, ship_order{order.order}));
}
// [/handlers]

void subscribe_buyer(const order_placed&) {}

void declare(holdfast::host& host) {
    // [consume]
    host.add_consumer<order_placed>("mail", send_mail, {.concurrency = 4, .timeout = 30s});
    host.add_consumer<order_placed>("shipping", [&host](order_placed order, holdfast::unit_of_work& unit) {
        return start_shipping(host.jobs(), std::move(order), unit);
    });
    // [/consume]
    // [rules]
    holdfast::exception_policy own;
    own.on<mailbox_full>().redeliver({10min, 1h, 6h});
    own.inherit(); // and for the rest, what is said below
    host.add_consumer<order_placed>("newsletter", subscribe_buyer, own);

    holdfast::exception_policy rules;
    rules.on<std::invalid_argument>().dead_letter();
    rules.default_().retry(5, 100ms).then_redeliver();
    host.use(holdfast::error_scope::bus, rules); // all consumers; host.use(rules): jobs as well
    // [/rules]
    host.add<ship_order>([](const ship_order&) { ++shipped; });
}

holdfast::task<void> publish_forms(holdfast::events& events) {
    // [publish]
    auto published = co_await events.publish(order_placed{"A-7", 1999, ""}); // a write of its own
    if (!published) throw holdfast::failed(published.error());               // not recorded: say so to whoever asked

    holdfast::publish_options options;
    options.id = *published; // yours, for a call that may have to be repeated: the same id twice is one event
    options.extra = {{std::string(holdfast::event_header::correlation_id), "request-4711"}};
    published = co_await events.publish(order_placed{"A-7", 1999, ""}, options);

    std::vector<order_placed> many = {{"A-8", 500, ""}, {"A-9", 700, ""}};
    auto all = co_await events.publish_all(std::move(many)); // one write: all of them, or none
    // [/publish]
    check(published && all && all->size() == 2, "all of them were published");
}

holdfast::task<void> look_after(holdfast::event_transport& transport) {
    // [care]
    auto dead = co_await transport.dead_messages({.subscription = "mail"}, 50);
    if (!dead) throw holdfast::failed(dead.error());
    for (const holdfast::dead_message& each : dead->messages) {
        std::vector<holdfast::identifier> one = {each.message.id}; // each.error, each.calls, each.message tell why
        value_of(co_await transport.send_again("mail", std::move(one)));
    }
    const auto replayed = co_await transport.replay("mail", {.position = 2}); // everything from there on, once more
    // [/care]
    check(replayed.has_value(), "replayed");
}

template <class Condition>
void until(Condition met, const char* what) {
    for (int i = 0; i < 2000 && !met(); ++i) std::this_thread::sleep_for(5ms);
    check(met(), what);
}

} // namespace

int main() {
    auto host = holdfast::host::from_file("events.toml");
    declare(host);
    host.start();
    sync_wait(host.runtime(), publish_forms(host.events()));
    until([] { return mails == 3 && shipped == 3; }, "three mails, three parcels");
    sync_wait(host.runtime(), look_after(host.event_transport()));
    return 0;
}
