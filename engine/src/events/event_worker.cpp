#include <holdfast/event_worker.hpp>

#include <algorithm>

#include "event_worker_state.hpp"

namespace holdfast::detail {

namespace {

std::unexpected<error> wrong(std::string what) {
    return fail(errc::invalid_argument, "event worker: " + std::move(what));
}

std::string describe(const event_consumer& which) {
    return "consumer \"" + std::string(which.name()) + "\" of \"" + std::string(which.topic()) + "\"";
}

} // namespace

event_worker_state::event_worker_state(event_worker_parts parts, event_worker_options options, std::uint64_t seed)
    : with(parts), how(std::move(options)), name(how.name), random(seed_or_random(seed)),
      transport_outage(with.log, with.on, "the transport"), inbox_outage(with.log, with.on, "the inbox") {
    if (name.empty()) name = default_worker_name(random);
    if (with.inbox != nullptr) inbox = with.inbox->outbox();
}

result<void> event_worker_state::check() const {
    constexpr duration zero = duration::zero();
    if (how.batch < 1) return wrong(".batch must be 1 or more");
    if (how.lease <= zero) return wrong(".lease must be longer than 0");
    if (how.heartbeat && (*how.heartbeat <= zero || *how.heartbeat >= how.lease))
        return wrong(".heartbeat must be longer than 0 and shorter than .lease");
    if (how.poll <= zero || how.sweep <= zero) return wrong(".poll and .sweep must be longer than 0");
    if (how.settle_wait < zero || how.unknown_topic_delay < zero || how.shutdown_grace < zero || how.last_wait < zero)
        return wrong(".settle_wait, .unknown_topic_delay, .shutdown_grace and .last_wait must not be negative");
    return {};
}

result<consumer_kind> event_worker_state::learn(event_consumer& one) const {
    consumer_kind kind{one, one.options()};
    if (one.wants_unit() && (with.inbox == nullptr || !with.inbox->capabilities().units_of_work))
        return fail(errc::configuration, describe(one) +
                                             " takes a unit of work, but there is no store with units of work "
                                             "and an outbox: write [store] or [store.outbox]");
    if (one.wants_unit() && one.options().inbox && inbox == nullptr)
        return fail(errc::configuration, describe(one) +
                                             " takes a unit of work, but its store has no outbox, so it has "
                                             "no inbox either");
    if (kind.options.policy.empty()) return kind;
    const std::string what = describe(one) + " runs under policy \"" + kind.options.policy + "\"";
    if (with.policies == nullptr) return fail(errc::unknown_policy, what + ", but this worker was given no policies");
    auto bound = with.policies->runner().bind(kind.options.policy);
    if (!bound) return fail(bound.error().code, what + ": " + bound.error().message);
    kind.policy.emplace(**bound);
    return kind;
}

result<void> event_worker_state::learn_consumers() {
    bool wants_inbox = false;
    for (const auto& each : with.consumers.subscribers()) {
        event_lane& lane = lanes.emplace_back(each, with.consumers.error_rules(each.name));
        lane.counts.name = each.name;
        for (event_consumer* one : each.consumers) {
            auto kind = learn(*one);
            if (!kind) return std::unexpected(std::move(kind.error()));
            wants_inbox = wants_inbox || kind->options.inbox;
            lane.kinds.emplace(std::string(one->topic()), *kind);
        }
    }
    if (wants_inbox && inbox == nullptr)
        with.log.warning(who() + " has no store with an outbox, so it has no inbox: consumers may see an event twice");
    return {};
}

void event_worker_state::launch() {
    const self s = shared_from_this();
    care.spawn(settle(s));
    care.spawn(mind(s));
    care.spawn(renew(s));
    for (event_lane& each : lanes) intake.spawn(feed(s, each));
    intake.spawn(sweep(s));
}

bool event_worker_state::busy() const {
    const std::lock_guard lock(mutex);
    return rows_running > 0;
}

bool event_worker_state::is_stopping() const {
    const std::lock_guard lock(mutex);
    return stopping || with.on.stopped();
}

task<void> event_worker_state::wait_for_rows(self s, time_point until, bool patiently) {
    while (s->busy() && s->with.on.now() < until) {
        {
            const std::lock_guard lock(s->mutex);
            if (patiently && s->in_a_hurry) co_return;
        }
        auto waiting = s->drained.wait(s->with.on, until);
        if (!co_await std::move(waiting)) co_return;
    }
}

task<void> event_worker_state::stop(self s, std::optional<duration> grace) {
    runtime& on = s->with.on;
    const time_point began = on.now();
    {
        const std::lock_guard lock(s->mutex);
        if (!s->started || s->stop_began) co_return;
        s->stop_began = true;
        s->stopping = true;
    }
    s->give_back_ready();
    s->hurry.request_stop();
    s->sweeper.set();
    for (event_lane& each : s->lanes) each.feeder.set();
    auto joining = s->intake.join();
    co_await std::move(joining);
    for (event_lane& each : s->lanes) each.watching.reset();

    auto graceful = wait_for_rows(s, saturating_add(began, grace.value_or(s->how.shutdown_grace)), true);
    co_await std::move(graceful);
    if (s->busy()) {
        s->interrupt_all();
        auto last = wait_for_rows(s, saturating_add(on.now(), s->how.last_wait), false);
        co_await std::move(last);
    }
    {
        const std::lock_guard lock(s->mutex);
        s->closing = true;
        s->give_up_at = saturating_add(on.now(), s->how.last_wait);
    }
    s->settler.set();
    s->minder.set();
    s->renewer.set();
    auto settling = s->care.join();
    co_await std::move(settling);
    int left = 0;
    {
        const std::lock_guard lock(s->mutex);
        s->closed = true;
        left = s->rows_running;
    }
    if (left > 0)
        s->with.log.warning(
            std::to_string(left) + (left == 1 ? " consumer" : " consumers") +
            " ignored the request to stop and still run; their events come again when their leases have "
            "run out");
}

void event_worker_state::stop_now() {
    {
        const std::lock_guard lock(mutex);
        in_a_hurry = true;
        stopping = true;
    }
    give_back_ready();
    hurry.request_stop();
    for (event_lane& each : lanes) each.feeder.set();
    drained.set();
    interrupt_all();
}

// The worker went away without a stop: nothing of it may touch the transport any more than it can help.
void event_worker_state::abandon() noexcept {
    bool alone = false; // nobody waits for the loops
    {
        const std::lock_guard lock(mutex);
        if (!started || closed) return;
        alone = !stop_began;
        stopping = closing = closed = true;
        give_up_at = time_point{};
    }
    for (event_lane& each : lanes) each.watching.reset();
    hurry.request_stop();
    for (event_lane& each : lanes) each.feeder.set();
    sweeper.set();
    settler.set();
    minder.set();
    renewer.set();
    interrupt_all();
    if (alone) outlive(shared_from_this(), intake, care);
}

random_series event_worker_state::draw() {
    const std::lock_guard lock(mutex);
    return random_series(random.next());
}

task<void> event_worker_state::back_off(int n) {
    duration wait{};
    std::stop_token woken;
    {
        const std::lock_guard lock(mutex);
        wait = loop_back_off(n, random, stopping);
        if (!stopping) woken = hurry.get_token();
    }
    co_await sleep_for(with.on, wait, std::move(woken));
}

bool event_worker_state::is_past_giving_up() const {
    if (with.on.stopped()) return true;
    const time_point now = with.on.now();
    const std::lock_guard lock(mutex);
    return closed || now >= give_up_at;
}

event_worker_snapshot event_worker_state::snapshot() const {
    const time_point now = with.on.now();
    const std::lock_guard lock(mutex);
    event_worker_snapshot seen;
    seen.name = name;
    seen.stopping = stopping;
    seen.transport_down = transport_outage.is_out();
    seen.inbox_down = inbox_outage.is_out();
    seen.unsettled = static_cast<int>(endings.size()) + writing;
    for (const event_lane& each : lanes) {
        seen.consumers.push_back(each.counts);
        seen.consumers.back().running = each.running;
        seen.consumers.back().waiting = each.waiting;
    }
    for (const run& each : all) {
        if (!each->running) continue;
        seen.running.push_back({.id = each->what.message.id,
                                .consumer = each->in.of.name,
                                .topic = each->what.message.topic,
                                .attempt = each->what.calls + each->calls,
                                .running_for = now - each->began,
                                .asked_to_stop = each->lost || each->timed_out || each->stopping});
    }
    std::ranges::sort(seen.running, std::greater<>(), &running_event::running_for);
    return seen;
}

} // namespace holdfast::detail

namespace holdfast {

event_worker::event_worker(event_worker_parts parts, event_worker_options options, std::uint64_t seed)
    : state_(std::make_shared<detail::event_worker_state>(parts, std::move(options), seed)) {}

event_worker::~event_worker() {
    state_->abandon();
}

result<void> event_worker::start() {
    if (auto fine = state_->check(); !fine) return fine;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->started) return fail(errc::invalid_argument, "event worker: it was started already");
    }
    if (auto fine = state_->learn_consumers(); !fine) {
        state_->lanes.clear();
        return fine;
    }
    {
        const std::lock_guard lock(state_->mutex);
        state_->started = true;
    }
    state_->launch();
    return {};
}

task<void> event_worker::stop(std::optional<duration> grace) {
    return detail::event_worker_state::stop(state_, grace);
}
void event_worker::stop_now() {
    state_->stop_now();
}
event_worker_snapshot event_worker::snapshot() const {
    return state_->snapshot();
}
const std::string& event_worker::name() const noexcept {
    return state_->name;
}

} // namespace holdfast
