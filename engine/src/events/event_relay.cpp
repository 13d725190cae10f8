#include <holdfast/event_relay.hpp>

#include <algorithm>

#include "jobs/job_verdict.hpp"
#include "relay_state.hpp"

namespace holdfast::detail {

namespace {

constexpr duration first_retry = std::chrono::seconds{1};
constexpr duration longest_wait = std::chrono::minutes{5};

std::unexpected<error> wrong(std::string what) {
    return fail(errc::invalid_argument, "relay: " + std::move(what));
}

// No transport will ever take it.
bool is_hopeless(errc code) noexcept {
    return code == errc::invalid_argument || code == errc::too_large;
}

} // namespace

relay_state::relay_state(relay_parts parts, relay_options options, std::uint64_t seed)
    : with(parts), how(std::move(options)), name(how.name), random(seed_or_random(seed)),
      outbox_outage(with.log, with.on, "the outbox"), transport_outage(with.log, with.on, "the transport") {
    if (name.empty()) name = default_worker_name(random);
}

result<void> relay_state::check() const {
    if (how.batch < 1) return wrong(".batch must be 1 or more");
    if (how.in_flight < 1) return wrong(".in_flight must be 1 or more");
    if (how.max_failures < 1) return wrong(".max_failures must be 1 or more");
    if (how.lease <= duration::zero() || how.poll <= duration::zero())
        return wrong(".lease and .poll must be longer than 0");
    if (how.last_wait < duration::zero()) return wrong(".last_wait must not be negative");
    return {};
}

// Looks at once as long as there may be more: after a full batch, and after one that has landed, for it may have held
// keys up.
task<void> relay_state::feed(self s) {
    runtime& on = s->with.on;
    bool more = true;
    int failures = 0;
    for (;;) {
        co_await resume_on(on); // others have their turn between batches
        bool full_house = false;
        {
            const std::lock_guard lock(s->mutex);
            if (s->stopping || on.stopped()) co_return;
            full_house = s->flights >= s->how.in_flight;
        }
        if (full_house || !more) {
            auto waiting = s->feeder.wait(on, full_house ? never : on.now() + s->how.poll);
            if (!co_await std::move(waiting)) co_return;
            more = true;
            continue;
        }
        const time_point asked = on.now();
        auto leasing = s->with.outbox.lease_batch(s->how.batch, s->how.lease, s->name);
        auto leased = co_await std::move(leasing);
        if (!leased) {
            s->outbox_outage.failed("relay " + s->name, "lease messages", leased.error());
            auto backing_off = s->wait_to_try_again(++failures, std::nullopt, never);
            co_await std::move(backing_off);
            continue;
        }
        failures = 0;
        s->outbox_outage.answered("relay " + s->name, "lease messages");
        more = leased->size() >= static_cast<std::size_t>(s->how.batch);
        if (leased->empty()) continue;
        {
            const std::lock_guard lock(s->mutex);
            ++s->flights;
        }
        s->loops.spawn(fly(s, {.messages = std::move(*leased), .leases_end = saturating_add(asked, s->how.lease)}));
    }
}

task<void> relay_state::fly(self s, flight batch) {
    auto publishing = s->publish_all(batch);
    co_await std::move(publishing);
    auto marking = s->mark(batch);
    co_await std::move(marking);
    {
        const std::lock_guard lock(s->mutex);
        --s->flights;
    }
    s->feeder.set();
}

std::vector<envelope> relay_state::sendable(const flight& batch, std::size_t from, std::size_t size,
                                            std::vector<const leased_message*>& which) const {
    std::vector<envelope> made;
    made.reserve(size);
    for (std::size_t i = from; i < from + size; ++i) {
        const leased_message& each = batch.messages[i];
        if (!each.message.key.empty() && batch.held_up.contains(each.message.key)) continue;
        which.push_back(&each);
        made.push_back(each.message);
    }
    return made;
}

// In order. A call that the transport refuses is halved until the message that it cannot take is alone; what comes behind
// that one in its key waits with it, unless it is set aside.
task<void> relay_state::publish_all(flight& batch) {
    struct range {
        std::size_t from;
        std::size_t size;
    };
    std::vector<range> left{{0, batch.messages.size()}};
    for (int failures = 0; !left.empty();) {
        const range at = left.back();
        left.pop_back();
        std::vector<const leased_message*> which;
        auto messages = sendable(batch, at.from, at.size, which);
        if (messages.empty()) continue;
        auto publishing = with.to.publish(std::move(messages));
        const auto published = co_await std::move(publishing);
        if (published) {
            failures = 0;
            transport_outage.answered("relay " + name, "publish messages");
            {
                const std::lock_guard lock(mutex);
                counts.held_back = false;
            }
            for (const leased_message* each : which) batch.sent.push_back(&each->lease);
        } else if (is_passing(published.error().code)) {
            const error& why = published.error();
            if (why.code == errc::overloaded) {
                const std::lock_guard lock(mutex);
                counts.held_back = true;
            } else {
                transport_outage.failed("relay " + name, "publish messages", why);
            }
            left.push_back(at);
            auto waiting = wait_to_try_again(++failures, why.retry_after, batch.leases_end);
            if (!co_await std::move(waiting)) co_return; // whoever leases them next tries again
        } else if (at.size > 1) {
            left.push_back({at.from + at.size / 2, at.size - at.size / 2});
            left.push_back({at.from, at.size / 2});
        } else {
            judge(batch, *which.front(), published.error());
        }
    }
}

void relay_state::judge(flight& batch, const leased_message& one, const error& why) {
    const bool hopeless = is_hopeless(why.code) || one.attempts + 1 >= how.max_failures;
    message_failure made{
        &one.lease, job_verdict::clean_text(std::string(to_text(why.code)) + ": " + why.message), {}, hopeless};
    {
        const std::lock_guard lock(mutex);
        if (!hopeless)
            made.retry_after =
                with_jitter(backoff_delay(backoff::exponential, first_retry, longest_wait, one.attempts + 1), random);
    }
    if (!hopeless && !one.message.key.empty()) batch.held_up.insert(one.message.key);
    const std::string who =
        "event " + to_text(one.message.id) + " \"" + job_verdict::clean_text(one.message.topic) + "\" ";
    if (hopeless)
        with.log.error(who + "cannot be published and is set aside: " + made.why +
                       "; the next of its key goes on without it");
    else
        with.log.warning(who + "was not published, attempt " + std::to_string(one.attempts + 1) + " of " +
                         std::to_string(how.max_failures) + ", again in " + to_short_text(made.retry_after) + ": " +
                         made.why);
    batch.failed.push_back(std::move(made));
}

// What cannot be marked is published again when its lease has run out; the transport knows the id.
task<void> relay_state::mark(flight& batch) {
    for (int n = 1; !batch.sent.empty(); ++n) {
        auto marking = with.outbox.delivered(batch.sent);
        auto answers = co_await std::move(marking);
        if (answers) {
            outbox_outage.answered("relay " + name, "mark messages");
            // What is gone was marked, by an earlier try whose answer was lost or by another relay: nobody sends it again.
            for (write_answer& each : *answers)
                if (each == write_answer::gone) each = write_answer::done;
            count_answers(*answers, &relay_snapshot::published);
            break;
        }
        outbox_outage.failed("relay " + name, "mark messages", answers.error());
        auto waiting = wait_to_try_again(n, answers.error().retry_after, batch.leases_end);
        if (co_await std::move(waiting)) continue;
        const std::lock_guard lock(mutex);
        counts.lost += batch.sent.size();
        break;
    }
    for (int n = 1; !batch.failed.empty(); ++n) {
        auto marking = with.outbox.failed(batch.failed);
        const auto answers = co_await std::move(marking);
        if (answers) {
            outbox_outage.answered("relay " + name, "mark messages");
            for (std::size_t i = 0; i < answers->size() && i < batch.failed.size(); ++i)
                count_answers(std::span(*answers).subspan(i, 1),
                              batch.failed[i].set_aside ? &relay_snapshot::set_aside : &relay_snapshot::failed);
            break;
        }
        outbox_outage.failed("relay " + name, "mark messages", answers.error());
        auto waiting = wait_to_try_again(n, answers.error().retry_after, batch.leases_end);
        if (!co_await std::move(waiting)) break;
    }
}

void relay_state::count_answers(std::span<const write_answer> answers, std::uint64_t relay_snapshot::* as) {
    const std::lock_guard lock(mutex);
    for (const write_answer each : answers) ++(each == write_answer::done ? counts.*as : counts.lost);
}

task<bool> relay_state::wait_to_try_again(int n, std::optional<duration> asked, time_point leases_end) {
    duration wait{};
    std::stop_token woken;
    {
        const std::lock_guard lock(mutex);
        wait = loop_back_off(n, random, stopping);
        if (asked && *asked > duration::zero()) wait = std::min(wait, *asked);
        if (!stopping) woken = hurry.get_token();
    }
    co_await sleep_until(with.on, std::min(saturating_add(with.on.now(), wait), leases_end), std::move(woken));
    const time_point now = with.on.now();
    const std::lock_guard lock(mutex);
    co_return !with.on.stopped() && now < leases_end && now < give_up_at;
}

task<void> relay_state::stop(self s) {
    {
        const std::lock_guard lock(s->mutex);
        if (!s->started || s->stop_began) co_return;
        s->stop_began = true;
        s->stopping = true;
        s->give_up_at = saturating_add(s->with.on.now(), s->how.last_wait);
    }
    s->hurry.request_stop();
    s->feeder.set();
    auto joining = s->loops.join();
    co_await std::move(joining);
}

// The relay went away without a stop: nothing of it goes on for longer than it can help.
void relay_state::abandon() noexcept {
    {
        const std::lock_guard lock(mutex);
        if (!started || stopping) return;
        stopping = true;
        give_up_at = time_point{};
    }
    hurry.request_stop();
    feeder.set();
    outlive(shared_from_this(), loops);
}

relay_snapshot relay_state::snapshot() const {
    const std::lock_guard lock(mutex);
    relay_snapshot seen = counts;
    seen.name = name;
    seen.stopping = stopping;
    seen.outbox_down = outbox_outage.is_out();
    seen.transport_down = transport_outage.is_out();
    seen.in_flight = flights;
    return seen;
}

} // namespace holdfast::detail

namespace holdfast {

event_relay::event_relay(relay_parts parts, relay_options options, std::uint64_t seed)
    : state_(std::make_shared<detail::relay_state>(parts, std::move(options), seed)) {}

event_relay::~event_relay() {
    state_->abandon();
}

result<void> event_relay::start() {
    if (auto fine = state_->check(); !fine) return fine;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->started) return fail(errc::invalid_argument, "relay: it was started already");
        state_->started = true;
    }
    state_->loops.spawn(detail::relay_state::feed(state_));
    return {};
}

task<void> event_relay::stop() {
    return detail::relay_state::stop(state_);
}
void event_relay::nudge() noexcept {
    state_->feeder.set();
}
relay_snapshot event_relay::snapshot() const {
    return state_->snapshot();
}
const std::string& event_relay::name() const noexcept {
    return state_->name;
}

} // namespace holdfast
