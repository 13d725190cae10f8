// What keeps a transport in shape: back-pressure, forgetting, hints.
#include <atomic>
#include <chrono>
#include <thread>

#include <holdfast/store_conformance.hpp>

#include "held_threads.hpp"
#include "transport_lab.hpp"

namespace holdfast::conformance {

namespace {

using kind = delivery_settlement::kind;

constexpr auto patience = 10s; // much longer than a hint takes

void too_much(transport_lab& in) { // max_backlog = 10
    const event_user user(in);
    user.subscribe();
    user.publish(10, "");
    const error why = in.refused(user.transport().publish({user.make("")}), {errc::overloaded}, "the eleventh");
    check(why.retry_after.has_value(), "it says when to come back");
    check_equal(user.view().waiting, std::uint64_t{10}, "messages: nothing was published");
    user.publish("", "parcels");
    const delivery got = user.receive_one();
    in.refused(user.transport().publish({user.make("")}), {errc::overloaded}, "a leased one is open still");
    user.done(got);
    user.publish("");
    check_equal(user.drain(5).size(), std::size_t{10}, "messages");
}

void of_the_slowest(transport_lab& in) { // max_backlog = 10
    const event_user user(in);
    user.subscribe("billing");
    user.subscribe("mail");
    user.publish(10, "");
    check_equal(user.drain(10, "billing").size(), std::size_t{10}, "messages of the one that keeps up");
    in.refused(user.transport().publish({user.make("")}), {errc::overloaded}, "while the other does not");
    check(in.ok(user.transport().unsubscribe("mail"), "unsubscribe"), "it was there");
    user.publish("");
}

task<result<void>> carry_one(event_transport& transport, envelope one) {
    auto subscribing = transport.subscribe({"billing", {"orders"}, false});
    if (auto done = co_await std::move(subscribing); !done) co_return done;
    auto publishing = transport.publish({std::move(one)});
    if (auto done = co_await std::move(publishing); !done) co_return done;
    auto receiving = transport.receive("billing", 1, 1min, "kit");
    const auto got = co_await std::move(receiving);
    if (!got) co_return std::unexpected(got.error());
    if (got->size() != 1) co_return fail(errc::internal, "the message was not received");
    const delivery_lease* const held[] = {&got->front().lease};
    auto renewing = transport.renew(held, 1min);
    if (auto done = co_await std::move(renewing); !done) co_return std::unexpected(done.error());
    const delivery_settlement ends[] = {{&got->front().lease, kind::acknowledge, {}, 1, {}}};
    auto settling = transport.settle(ends);
    if (auto done = co_await std::move(settling); !done) co_return std::unexpected(done.error());
    co_return result<void>{};
}

void waits_for_no_handler(transport_lab& in) {
    std::vector<task<result<void>>> calls;
    calls.push_back(carry_one(in.transport(), event_user(in).make("")));
    const held_threads held(in.on());
    for (auto& each : in.at_once(std::move(calls)))
        in.value_of(std::move(each), "a call while handlers have all threads");
    check(!held.were_waited_for(),
          "a transport does not wait for the runtime's blocking threads, which are the handlers': it has its own");
}

void forgets_what_is_old(transport_lab& in) { // keep = 1s
    const event_user user(in);
    user.subscribe();
    user.publish("", "nobody");
    user.publish(3, "");
    const auto got = user.receive(3);
    user.done(got[0]);
    user.bury(got[1]);
    check_equal(in.ok(user.transport().sweep(100), "sweep"), 0, "messages forgotten while they are young");
    in.pass(1100ms);
    check_equal(in.ok(user.transport().sweep(100), "sweep"), 2, "messages forgotten: settled, or nobody's");
    check_equal(in.ok(user.transport().sweep(100), "sweep"), 0, "messages forgotten, the second time");
    check_equal(user.dead().size(), std::size_t{1}, "dead letters stay");
    user.done(got[2]);
    check_equal(in.ok(user.transport().replay("billing", {}), "replay"), std::uint64_t{2},
                "messages replayed: those that are kept");
    check_equal(user.drain(10).size(), std::size_t{2}, "messages");
    in.pass(1100ms);
    check_equal(in.ok(user.transport().sweep(100), "sweep"), 2, "messages forgotten when nobody needs them");
    user.publish(got[0].message);
    check_equal(user.drain(10).size(), std::size_t{1}, "an id that was forgotten is a new message");
}

void a_little_at_a_time(transport_lab& in) { // keep = 200ms
    const event_user user(in);
    user.publish(50, "");
    in.pass(250ms);
    int total = 0;
    for (int i = 0; i < 100 && total < 50; ++i) total += in.ok(user.transport().sweep(10), "sweep");
    check_equal(total, 50, "messages forgotten");
    in.refused(user.transport().sweep(0), {errc::invalid_argument}, "sweeping nothing");
}

class hints {
public:
    explicit hints(event_transport& of, std::string name = "billing")
        : watch_(of.watch(std::move(name), [this] { ++count_; })) {
        if (watch_ == nullptr) throw case_skipped(not_offered);
    }
    int count() const noexcept { return count_; }
    void end() { watch_.reset(); }

    // A hint comes after `act` has begun.
    template <class Act>
    void follow(Act act, std::string_view what, std::source_location where = std::source_location::current()) const {
        const int before = count_;
        act();
        const auto give_up = std::chrono::steady_clock::now() + patience;
        while (count_ == before && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(200us);
        if (count_ == before) fail_check("no hint came after " + std::string(what), where);
    }

private:
    std::atomic<int> count_ = 0;
    std::unique_ptr<event_watch> watch_;
};

void hinted(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    hints told(user.transport());
    told.follow([&] { user.publish("k"); }, "a message was published");
    told.follow([&] { user.publish(3, "k"); }, "messages were published");
    auto got = user.receive(4);
    check_equal(got.size(), std::size_t{4}, "messages that can be received after the hints");
    told.follow([&] { user.done(got[0], kind::release); }, "a message went back");
    const delivery again = user.receive_one();
    for (std::size_t i = 1; i < got.size(); ++i) user.done(got[i]);
    user.bury(again);
    told.follow([&] { in.ok(user.transport().send_again("billing", {again.message.id}), "send_again"); },
                "a dead letter was sent again");
    user.done(user.receive_one());
    told.follow([&] { in.ok(user.transport().replay("billing", {}), "replay"); }, "messages were replayed");
    told.end();
    const int before = told.count();
    user.publish("k");
    check_equal(told.count(), before, "hints after the watch has ended");
}

void hinted_about_the_next_of_a_key(transport_lab& in) {
    const event_user user(in);
    user.subscribe();
    user.publish(2, "k");
    const delivery first = user.receive_one();
    const hints told(user.transport());
    told.follow([&] { user.done(first); }, "the next of its key may be received");
}

void hinted_from_elsewhere(transport_lab& in) {
    const event_user here(in);
    const event_user there(in, in.other());
    here.subscribe();
    const hints told(here.transport());
    for (int i = 0; i < 3; ++i) {
        told.follow([&] { there.publish(""); }, "a message was published through another instance");
        in.pass(20ms);
    }
    check_equal(here.waiting_for(), std::size_t{3}, "messages that can be received after the hints");
}

void clock_goes_on(transport_lab& in) {
    const store_time first = in.now();
    in.pass(20ms);
    check(in.now() >= first + 20ms, "its clock goes on");
    check(!in.transport().name().empty(), "it has a name");
    in.ok(in.transport().prepare(), "prepare(), once more");
}

} // namespace

transport_case_list transport_care_cases() {
    return {
        {"its clock goes on, and preparing twice does no harm", clock_goes_on},
        {"max_backlog open messages, and publishing waits", too_much, {{"max_backlog", "10"}}},
        {"the slowest subscription counts, until it is forgotten", of_the_slowest, {{"max_backlog", "10"}}},
        {"forgets what is old and nobody needs", forgets_what_is_old, {{"keep", "1s"}}},
        {"forgets a little at a time", a_little_at_a_time, {{"keep", "200ms"}}},
        {"calls go on while handlers have every blocking thread of the runtime", waits_for_no_handler},
        {"hints when something may be received, until the watch ends", hinted},
        {"hints when the next of a key may be received", hinted_about_the_next_of_a_key},
        {"hints of another instance", hinted_from_elsewhere},
    };
}

} // namespace holdfast::conformance
