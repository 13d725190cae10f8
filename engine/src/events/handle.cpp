// Runs the rows of received messages: one slot and one coroutine each, one message after the other.
#include <algorithm>

#include <holdfast/detail/exception_type.hpp>

#include "event_worker_state.hpp"
#include "jobs/job_verdict.hpp"

namespace holdfast::detail {

namespace {

using kind = delivery_settlement::kind;

constexpr duration complain_every = std::chrono::minutes{1};
constexpr duration no_thread_delay = std::chrono::seconds{1}; // until a handler that got no thread is tried again
constexpr std::size_t most_unknown_topics = 1000;             // remembered
constexpr int most_tries_to_record = 3;

// The next of its key may follow.
bool is_final(const delivery_settlement& s) noexcept {
    return s.how == kind::acknowledge || s.how == kind::dead_letter || s.how == kind::discard;
}

std::string text_of(const event_run& r) {
    return "event " + to_text(r.what.message.id) + " \"" + job_verdict::clean_text(r.what.message.topic) +
           "\" of consumer \"" + job_verdict::clean_text(r.in.of.name) + "\"";
}

bool is_timeout(const event_run& r, const std::exception_ptr& thrown, const std::optional<error>& returned) {
    if (!r.timed_out) return false;
    if (thrown) return exception_as<non_retryable_error>(thrown) == nullptr;
    return returned->code == errc::cancelled || returned->code == errc::timed_out;
}

} // namespace

delivery_error error_of(const std::exception_ptr& thrown, const std::optional<error>& returned) {
    if (thrown)
        return {job_verdict::clean_text(exception_type_name(thrown)),
                job_verdict::clean_text(exception_message(thrown)),
                {}};
    return {std::string(to_text(returned->code)), job_verdict::clean_text(returned->message), {}};
}

detached event_worker_state::run_row(self s, event_lane& in, event_row row) {
    bool go_on = co_await resume_on(s->with.on);
    for (run& each : row) {
        const run r = std::move(each);
        std::optional<delivery_settlement> how = release();
        if (r->lost) {
            how.reset();
        } else if (go_on && !s->is_stopping()) {
            auto handling = handle(s, r);
            how = co_await std::move(handling);
        }
        go_on = go_on && how && is_final(*how);
        s->end(r, std::move(how));
    }
    {
        const std::lock_guard lock(s->mutex);
        --in.running;
        --s->rows_running;
    }
    s->start_rows(in);
    in.feeder.set();
    s->settler.set();
    s->drained.set();
}

task<std::optional<delivery_settlement>> event_worker_state::handle(self s, run r) {
    if (auto decided = s->before_run(*r)) co_return decided;
    exception_history so_far{.redeliveries = r->what.redeliveries};
    for (;;) {
        s->begin_call(*r);
        std::exception_ptr thrown;
        std::optional<error> returned;
        try {
            auto calling = call(s, r);
            auto ended = co_await std::move(calling);
            if (!ended) returned = std::move(ended.error());
        } catch (...) {
            thrown = std::current_exception();
        }
        if (r->lost) break;
        if (!thrown && !returned) {
            s->end_calls(*r);
            co_return delivery_settlement{
                .held = nullptr, .how = kind::acknowledge, .after = {}, .calls = r->calls, .error = {}};
        }
        if (r->stopping) {
            s->end_calls(*r);
            co_return release();
        }
        if (auto put_off = s->without_thread(*r, thrown)) {
            s->end_calls(*r);
            co_return put_off;
        }
        so_far.calls = std::max(1, r->what.calls + r->calls);
        const exception_decision next = s->decide_on(*r, so_far, thrown, returned);
        delivery_settlement how{
            .held = nullptr,
            .how = kind::redeliver,
            .after = next.after,
            .calls = r->calls,
            .error = is_timeout(*r, thrown, returned)
                         ? delivery_error{"timed_out",
                                          "the call took longer than its timeout of " +
                                              to_short_text(r->kind->options.timeout.value_or(duration::zero())),
                                          {}}
                         : error_of(thrown, returned)};
        if (next.what == exception_decision::action::retry) {
            so_far.add(next);
            {
                const std::lock_guard lock(s->mutex);
                ++r->in.counts.retried;
                r->deadline = never;
            }
            co_await sleep_for(s->with.on, next.after, s->hurry.get_token());
            if (r->lost) break;
            if (!s->is_stopping()) continue;
            s->end_calls(*r);
            co_return release();
        }
        s->end_calls(*r);
        if (next.what == exception_decision::action::dead_letter) how.how = kind::dead_letter;
        if (next.what == exception_decision::action::discard) how.how = kind::discard;
        if (!next.problem.empty()) how.error.message += "; and its rule failed over it: " + next.problem;
        if (how.how != kind::redeliver) how.after = {};
        if (how.how == kind::dead_letter)
            s->with.log.warning(text_of(*r) + " goes to the dead letters after " +
                                std::to_string(r->what.calls + r->calls) + " calls, for " +
                                std::string(to_text(next.why)) + ": " + how.error.type + ": " + how.error.message);
        else if (how.how == kind::discard)
            s->with.log.info(text_of(*r) + " is discarded: " + how.error.type + ": " + how.error.message);
        co_return how;
    }
    s->end_calls(*r);
    co_return std::nullopt;
}

exception_decision event_worker_state::decide_on(event_run& r, const exception_history& so_far,
                                                 const std::exception_ptr& thrown,
                                                 const std::optional<error>& returned) {
    auto mine = draw();
    if (is_timeout(r, thrown, returned)) return decide(r.in.rules, failure::refused(errc::timed_out), so_far, mine);
    if (thrown) return decide(r.in.rules, failure::thrown(thrown), so_far, mine);
    const result<void> as_returned = std::unexpected(*returned);
    return decide(r.in.rules, failure::returned(as_returned), so_far, mine);
}

// What is known without calling anybody.
std::optional<delivery_settlement> event_worker_state::before_run(event_run& r) {
    if (r.kind == nullptr) return unknown_topic(r);
    if (r.duplicate) return delivery_settlement{};
    if (r.what.crashes <= r.kind->options.max_crashes) return std::nullopt;
    delivery_settlement dead;
    dead.how = kind::dead_letter;
    dead.error = {"crash",
                  std::to_string(r.what.crashes) +
                      " processes died over it, or were too slow to keep its lease; "
                      "max_crashes allows " +
                      std::to_string(r.kind->options.max_crashes),
                  {}};
    with.log.warning(text_of(r) + " goes to the dead letters: " + dead.error.message);
    return dead;
}

// Not burnt: another process may consume it, or this one after its next start.
delivery_settlement event_worker_state::unknown_topic(event_run& r) {
    duration after{};
    bool complain = false;
    {
        const std::lock_guard lock(mutex);
        after = with_jitter(how.unknown_topic_delay, random);
        const time_point now = with.on.now();
        auto& seen = r.in.unknown_topics;
        const auto known = seen.find(r.what.message.topic);
        complain = known == seen.end() || now - known->second >= complain_every;
        if (seen.size() > most_unknown_topics) seen.clear();
        if (complain) seen.insert_or_assign(r.what.message.topic, now);
    }
    if (complain)
        with.log.warning(text_of(r) + ": nobody here consumes that event, so it is put off by " +
                         to_short_text(how.unknown_topic_delay) + " at a time; add the consumer, or unsubscribe");
    return release(after);
}

std::optional<delivery_settlement> event_worker_state::without_thread(const event_run& r,
                                                                      const std::exception_ptr& thrown) {
    const auto* const refused = exception_as<failed>(thrown);
    if (refused == nullptr || (refused->code() != errc::overloaded && refused->code() != errc::stopped))
        return std::nullopt;
    bool complain = false;
    duration after{};
    {
        const time_point now = with.on.now();
        const std::lock_guard lock(mutex);
        if (!r.never_began()) return std::nullopt;
        if (refused->code() == errc::stopped) return release();
        after = with_jitter(no_thread_delay, random);
        complain = now >= next_complaint_of_threads;
        if (complain) next_complaint_of_threads = now + complain_every;
    }
    if (complain)
        with.log.warning(text_of(r) + " is put off by " + to_short_text(no_thread_delay) +
                         ", and so may be others: " + refused->what() +
                         "; give the runtime more blocking_threads or a longer blocking_queue, or its consumer less "
                         "concurrency");
    return release(after);
}

void event_worker_state::begin_call(event_run& r) {
    bool sooner = false;
    {
        const std::lock_guard lock(mutex);
        if (!r.running) r.began = with.on.now();
        r.running = true;
        r.waits = r.begun = false;
        r.timed_out = false;
        r.stop = std::stop_source();
        sooner = set_deadline(r);
    }
    if (sooner) minder.set();
}

bool event_worker_state::set_deadline(event_run& r) {
    if (!r.kind->options.timeout) return false;
    r.deadline = saturating_add(with.on.now(), *r.kind->options.timeout);
    if (r.deadline >= next_deadline) return false;
    next_deadline = r.deadline;
    return true;
}

// A blocking handler's time does not run until it has a thread. Further attempts within the call get no more of it.
void event_worker_state::wait_for_thread(event_run& r) {
    const std::lock_guard lock(mutex);
    r.waits = true;
    if (!r.begun && !r.timed_out) r.deadline = never;
}

bool event_worker_state::begin_on_thread(event_run& r) {
    bool sooner = false;
    {
        const std::lock_guard lock(mutex);
        if (r.begun) return true;
        if (stopping) r.stopping = true; // so it goes back
        if (r.lost || r.stopping || r.timed_out) return false;
        r.begun = true;
        sooner = set_deadline(r);
    }
    if (sooner) minder.set();
    return true;
}

void event_worker_state::end_calls(event_run& r) {
    const time_point now = with.on.now();
    const std::lock_guard lock(mutex);
    r.running = false;
    r.deadline = never;
    r.in.average_run = with_run(r.in.average_run, now - r.began);
}

// Under its policy, if it has one, every attempt begins anew: with a unit of its own, where it wants one.
task<result<void>> event_worker_state::call(self s, run r) {
    if (!r->kind->policy) {
        auto once = call_once(s, r, r->stop.get_token());
        co_return co_await std::move(once);
    }
    auto once = [&](attempt& a) { return call_once(s, r, a.stop_token()); };
    auto calling = r->kind->policy->execute(std::move(once), r->stop.get_token());
    co_return co_await std::move(calling);
}

task<result<void>> event_worker_state::call_once(self s, run r, std::stop_token stop) {
    const delivery& what = r->what;
    int number = 0;
    {
        const std::lock_guard lock(s->mutex);
        number = what.calls + r->calls + 1;
    }
    event_context context({.message = &what.message,
                           .consumer = r->in.of.name,
                           .position = what.position,
                           .attempt = number,
                           .redeliveries = what.redeliveries,
                           .crashes = what.crashes,
                           .generation = what.generation,
                           .clock = r.get()},
                          s->with.on, s->with.log, std::move(stop), s->with.client);
    auto calling = r->kind->consumer.wants_unit() ? call_in_unit(s, r, context) : call_plain(s, r, context);
    co_return co_await std::move(calling);
}

task<result<void>> event_worker_state::call_plain(self s, run r, event_context& context) {
    {
        const std::lock_guard lock(s->mutex);
        ++r->calls;
    }
    auto running = r->kind->consumer.run(r->what.message, context, nullptr);
    auto ended = co_await std::move(running);
    if (!ended || s->inbox == nullptr || !r->kind->options.inbox) co_return ended;
    auto recording = record(s, r);
    co_await std::move(recording);
    co_return result<void>{};
}

// Done is done: without the mark the event may come to its consumer once more, if it is delivered once more.
task<void> event_worker_state::record(self s, run r) {
    for (int n = 1;; ++n) {
        auto marking = s->inbox->receive(r->inbox_name(), r->what.message.id, r->kind->options.remember);
        const auto marked = co_await std::move(marking);
        if (marked) {
            s->inbox_outage.answered(s->who(), "write to the inbox");
            co_return;
        }
        s->inbox_outage.failed(s->who(), "write to the inbox", marked.error());
        if (n == most_tries_to_record || !is_passing(marked.error().code)) co_return;
        auto backing_off = s->back_off(n);
        co_await std::move(backing_off);
    }
}

} // namespace holdfast::detail

namespace holdfast {

void event_run::handler_waits() noexcept {
    owner.wait_for_thread(*this);
}
bool event_run::handler_begins() noexcept {
    return owner.begin_on_thread(*this);
}

} // namespace holdfast
