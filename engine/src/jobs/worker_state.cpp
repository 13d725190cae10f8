#include "worker_state.hpp"

#include <algorithm>
#include <set>

#include "job_rules.hpp"

namespace holdfast::detail {

namespace {

std::unexpected<error> wrong(std::string what) {
    return fail(errc::invalid_argument, "worker: " + std::move(what));
}

} // namespace

worker_state::worker_state(worker_parts parts, worker_options options, std::uint64_t seed)
    : with(parts), how(std::move(options)), name(how.name), ids(seed_or_random(seed)), random(seed_or_random(seed)),
      queues(how.queues, how.concurrency, how.prefetch),
      other_kinds(how.unknown_kind_delay,
                  how.unknown_kind_delay > forever / 10 ? forever : 10 * how.unknown_kind_delay),
      store_outage(with.log, with.on, "the store") {
    if (name.empty()) name = default_worker_name(random);
    if (with.client == nullptr) with.client = &own_client.emplace(with.store, ids, how.defaults);
    starter.run = &start_posted;
    starter.owner = this;
}

void worker_state::locked::release() noexcept {
    if (!lock_.owns_lock()) return;
    lock_.unlock();
    if (starter && !s_.with.on.post(s_.starter)) { // the runtime has stopped: nothing begins any more
        const std::lock_guard again(s_.mutex);
        s_.starter_posted = false;
        s_.starter.keep.reset();
    }
    if (feeder) s_.feeder.set();
    if (settler[0]) s_.settlers[0].set();
    if (settler[1]) s_.settlers[1].set();
    if (minder) s_.minder.set();
    if (drained) s_.drained.set();
}

result<void> worker_state::check() const {
    if (how.queues.empty()) return wrong("no queue is named in .queues, so there is nothing to work on");
    std::set<std::string> seen;
    for (const worker_queue& each : how.queues) {
        if (each.name.empty()) return wrong("a queue has no name");
        if (!seen.insert(each.name).second) return wrong("queue \"" + each.name + "\" is named twice");
        if (each.weight < 1) return wrong("the weight of queue \"" + each.name + "\" must be 1 or more");
        if (each.concurrency < 0)
            return wrong("the concurrency of queue \"" + each.name + "\" is negative; 0 = only the worker's limit");
    }
    if (how.concurrency < 1) return wrong(".concurrency must be 1 or more");
    if (how.prefetch < 0) return wrong(".prefetch is negative; 0 = claim only for free slots");
    if (how.batch < 1) return wrong(".batch must be 1 or more");
    if (how.recovery_limit < 1) return wrong(".recovery_limit must be 1 or more");
    constexpr duration zero = duration::zero();
    if (how.lease <= zero) return wrong(".lease must be longer than 0");
    if (how.heartbeat && (*how.heartbeat <= zero || *how.heartbeat >= how.lease))
        return wrong(".heartbeat must be longer than 0 and shorter than .lease");
    if (how.poll <= zero || how.sweep <= zero || how.progress_every <= zero)
        return wrong(".poll, .sweep and .progress_every must be longer than 0");
    if (how.settle_wait < zero || how.unknown_kind_delay < zero || how.shutdown_grace < zero || how.last_wait < zero ||
        how.kill_after < zero)
        return wrong(".settle_wait, .unknown_kind_delay, .shutdown_grace, .last_wait and .kill_after must not be "
                     "negative");
    return {};
}

result<void> worker_state::learn_kinds() {
    std::optional<error> problem;
    with.kinds.for_each([&](job_type& each) {
        if (problem) return;
        const job_options& options = each.options();
        job_kind kind{each, options, job_rules::table_of(each, with.rules)};
        kind.retries_in_run = std::ranges::any_of(
            kind.rules.rules(), [](const exception_table::entry& entry) { return entry.rule.retry.has_value(); });
        if (!options.policy.empty()) {
            const std::string what =
                "job \"" + std::string(options.name) + "\" runs under policy \"" + std::string(options.policy) + "\"";
            if (with.policies == nullptr) {
                problem = error{errc::unknown_policy, what + ", but this worker was given no policies", std::nullopt};
                return;
            }
            auto bound = with.policies->runner().bind(options.policy);
            if (!bound) {
                problem = error{bound.error().code, what + ": " + bound.error().message, std::nullopt};
                return;
            }
            kind.policy.emplace(**bound);
        }
        for (const std::string& finding : job_rules::lint(options, kind.rules)) with.log.warning(finding);
        kind.isolated = with.isolation != nullptr && with.isolation->takes(each);
        if (kind.isolated && kind.policy && kind.policy->options().hedge.max_hedges > 0) {
            problem = error{errc::invalid_argument,
                            "job \"" + std::string(options.name) + "\" is isolated and runs under policy \"" +
                                std::string(options.policy) +
                                "\", which hedges: its one process cannot run several attempts at the same time",
                            std::nullopt};
            return;
        }
        kinds.emplace(std::string(options.name), std::move(kind));
    });
    if (problem) return std::unexpected(std::move(*problem));
    return {};
}

void worker_state::launch() {
    watching =
        with.store.attend(queues.names(), [this] { hint(); }, [this](claimed_job job) { handed(std::move(job)); });
    if (watching != nullptr) address = watching->address();
    const self s = shared_from_this();
    care.spawn(settle(s, 0));
    care.spawn(settle(s, 1));
    care.spawn(mind(s));
    care.spawn(renew(s));
    care.spawn(report(s));
    intake.spawn(feed(s));
    intake.spawn(sweep(s));
}

bool worker_state::busy() const {
    const std::lock_guard lock(mutex);
    return queues.running() > adrift;
}

task<void> worker_state::stop(self s, std::optional<duration> grace) {
    runtime& on = s->with.on;
    const time_point began = on.now();
    std::vector<std::stop_source> unbegun;
    {
        locked in(*s);
        if (!s->started || s->stop_began) co_return;
        s->stop_began = true;
        s->stopping = true;
        s->give_back_ready(in);
        unbegun = s->give_back_unbegun(in);
        s->wake_settler(in);
        in.feeder = true;
    }
    for (std::stop_source& each : unbegun) each.request_stop();
    s->hurry.request_stop();
    s->sweeper.set();
    s->watching.reset();
    auto joining = s->intake.join();
    co_await std::move(joining);

    const auto wait_until = [](self w, time_point until, bool patiently) -> task<void> {
        while (w->busy() && w->with.on.now() < until) {
            {
                const std::lock_guard lock(w->mutex);
                if (patiently && w->in_a_hurry) co_return;
            }
            auto waiting = w->drained.wait(w->with.on, until);
            if (!co_await std::move(waiting)) co_return;
        }
    };
    auto graceful = wait_until(s, saturating_add(began, grace.value_or(s->how.shutdown_grace)), true);
    co_await std::move(graceful);
    if (s->busy()) {
        s->interrupt_all();
        auto last = wait_until(s, saturating_add(on.now(), s->how.last_wait), false);
        co_await std::move(last);
    }
    {
        const std::lock_guard lock(s->mutex);
        s->closing = true;
        s->give_up_at = saturating_add(on.now(), s->how.last_wait);
    }
    s->settlers[0].set();
    s->settlers[1].set();
    s->minder.set();
    s->renewer.set();
    s->reporter.set();
    auto settling = s->care.join();
    co_await std::move(settling);
    std::ptrdiff_t left = 0;
    {
        const std::lock_guard lock(s->mutex);
        s->closed = true;
        left =
            std::ranges::count_if(s->all, [](const run& each) { return each->running && !each->waits_for_thread(); });
    }
    if (left > 0)
        s->with.log.warning(std::to_string(left) + (left == 1 ? " handler" : " handlers") +
                            " ignored the request to stop and still run; their jobs will be recovered by others when "
                            "their leases have run out");
}

void worker_state::stop_now() {
    {
        locked in(*this);
        in_a_hurry = true;
        stopping = true;
        give_back_ready(in);
        give_back_unbegun(in); // interrupt_all() fires their tokens, too
        in.feeder = true;
        in.drained = true;
    }
    hurry.request_stop();
    interrupt_all();
}

// The worker went away without a stop: nothing of it may touch the store any more than it can help.
void worker_state::abandon() noexcept {
    bool alone = false; // nobody waits for the loops
    {
        locked in(*this);
        if (!started || closed) return;
        alone = !stop_began;
        stopping = closing = closed = true;
        give_up_at = time_point{};
        in.feeder = in.minder = in.settler[0] = in.settler[1] = true;
    }
    watching.reset();
    hurry.request_stop();
    sweeper.set();
    renewer.set();
    reporter.set();
    interrupt_all();
    if (alone) outlive(shared_from_this(), intake, care);
}

void worker_state::pause(bool on) {
    locked in(*this);
    paused = on;
    if (on) give_back_ready(in);
    else want_starter(in);
    hinted = true;
    in.feeder = true;
}

namespace {

std::string_view duty_text(int which) {
    constexpr std::string_view names[] = {"claim jobs", "settle jobs", "renew leases", "recover stale jobs"};
    return names[which];
}

} // namespace

void worker_state::store_failed(duty which, const error& e) {
    store_outage.failed("worker " + name, duty_text(static_cast<int>(which)), e);
}

void worker_state::store_answered(duty which) {
    if (store_outage.is_out()) store_outage.answered("worker " + name, duty_text(static_cast<int>(which)));
}

random_series worker_state::draw() {
    const std::lock_guard lock(mutex);
    return random_series(random.next());
}

task<void> worker_state::back_off(int n) {
    duration wait{};
    std::stop_token woken;
    {
        const std::lock_guard lock(mutex);
        wait = loop_back_off(n, random, stopping);
        if (!stopping) woken = hurry.get_token();
    }
    co_await sleep_for(with.on, wait, std::move(woken));
}

bool worker_state::is_past_giving_up() const {
    if (with.on.stopped()) return true;
    const time_point now = with.on.now();
    const std::lock_guard lock(mutex);
    return closed || now >= give_up_at;
}

worker_snapshot worker_state::snapshot() const {
    const time_point now = with.on.now();
    const std::lock_guard lock(mutex);
    worker_snapshot seen = counts;
    seen.name = name;
    seen.paused = paused;
    seen.stopping = stopping;
    seen.store_down = store_outage.is_out();
    seen.prefetched = queues.ready();
    seen.unsettled = static_cast<int>(endings.size()) + writing;
    if (last_recovery_at) seen.last_recovery_ago = now - *last_recovery_at;
    for (const run& each : all) {
        if (!each->running || (each->adrift && each->waits_for_thread())) continue;
        seen.running.push_back({.id = each->job.id,
                                .type = std::string(each->type_name()),
                                .queue = each->job.queue,
                                .attempt = each->context->attempt(),
                                .running_for = now - each->began,
                                .stuck = each->stuck,
                                .asked_to_stop = each->asked_to_stop()});
    }
    std::ranges::sort(seen.running, std::greater<>(), &running_job::running_for);
    return seen;
}

} // namespace holdfast::detail

namespace holdfast {

job_worker::job_worker(worker_parts parts, worker_options options, std::uint64_t seed)
    : state_(std::make_shared<detail::worker_state>(parts, std::move(options), seed)) {}

job_worker::~job_worker() {
    state_->abandon();
}

result<void> job_worker::start() {
    if (auto fine = state_->check(); !fine) return fine;
    if (auto fine = state_->learn_kinds(); !fine) return fine;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->started) return fail(errc::invalid_argument, "worker: it was started already");
        state_->started = true;
    }
    state_->launch();
    return {};
}

void job_worker::pause() {
    state_->pause(true);
}
void job_worker::resume() {
    state_->pause(false);
}
task<void> job_worker::stop(std::optional<duration> grace) {
    return detail::worker_state::stop(state_, grace);
}
void job_worker::stop_now() {
    state_->stop_now();
}
worker_snapshot job_worker::snapshot() const {
    return state_->snapshot();
}
const std::string& job_worker::name() const noexcept {
    return state_->name;
}

} // namespace holdfast
