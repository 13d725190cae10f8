#include <holdfast/job_scheduler.hpp>

#include <algorithm>
#include <random>
#include <utility>

#include "loop_parts.hpp"
#include "schedules/scheduler_state.hpp"

namespace holdfast {

namespace detail {

namespace {

std::uint64_t seed_or_random(std::uint64_t seed) {
    if (seed != 0) return seed;
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

constexpr job_options kind_options(std::string_view name, std::string_view queue) {
    return {.name = name,
            .queue = queue,
            .attempts = max_job_attempts,
            .retry = {.delay = std::chrono::seconds{1}, .max_delay = std::chrono::minutes{1}},
            .restart = restart::allowed,
            .keep_for = duration::zero()};
}

// Keeps the state for as long as a worker may run it.
class scheduler_kind final : public job_type {
public:
    using handler = task<result<void>> (*)(scheduler_state::self, payload, job_context&);
    scheduler_kind(std::string_view name, scheduler_state::self s, handler run)
        : options_(kind_options(name, queue_of(*s))), state_(std::move(s)), run_(run) {}

    const job_options& options() const noexcept override { return options_; }
    holdfast::restart restart() const noexcept override { return options_.restart; }
    task<result<void>> run(payload what, job_context& context) override {
        return run_(state_, std::move(what), context);
    }
    task<happened> probe(payload, job_context&) override { co_return happened::unknown; }

private:
    // One that is worked on in any case.
    static std::string_view queue_of(const scheduler_state& s) {
        return s.definitions.empty() ? job_options{}.queue : std::string_view(s.definitions.begin()->second.queue);
    }

    job_options options_;
    scheduler_state::self state_;
    handler run_;
};

} // namespace

scheduler_state::scheduler_state(scheduler_parts parts, scheduler_options options, std::uint64_t seed)
    : with(parts), how(std::move(options)), random(seed_or_random(seed)) {}

duration scheduler_state::jittered(duration d) {
    const std::lock_guard lock(mutex);
    return with_jitter(d, random);
}

result<void> scheduler_state::add(recurring_job which) {
    const std::string name(which.when.name);
    const std::string what = "schedule \"" + name + "\": ";
    try {
        check(which.when); // those made at run time were not looked at by the compiler
        check(which.type);
    } catch (const failed& e) {
        return fail(errc::invalid_argument, what + e.what());
    }
    if (started) return fail(errc::invalid_argument, what + "the scheduler has started: add it before");
    if (definitions.contains(name))
        return fail(errc::duplicate, "there are two schedules named \"" + name +
                                         "\": each .name is given once, it is how stores tell them apart");
    if (which.when.per_node && how.node.empty())
        return fail(errc::invalid_argument, what + "it is .per_node, but this scheduler has no node: name it in its "
                                                   "options, with a name that stays the same after a restart");
    auto plan = slot_plan::make(which.when, with.zones);
    if (!plan) return fail(plan.error().code, what + plan.error().message);
    const std::string at_node = which.when.per_node ? "@" + how.node : "";
    definition made{.job = std::move(which), .plan = std::move(*plan), .scope = name + at_node, .queue = {}};
    made.queue = std::string(made.job.type.queue) + at_node;
    made.start_is_due = true;
    made.seen = {.name = name, .job = made.job.what.type, .queue = made.queue, .when = made.plan.text()};
    definitions.emplace(name, std::move(made));
    return {};
}

// The wait of a fixed delay goes on when the delay was changed; a slot of other times does not.
definition* scheduler_state::find(const job_context& of) {
    const auto name = of.header(schedule_header::name);
    if (!name) return nullptr;
    const auto found = definitions.find(*name);
    if (found == definitions.end()) return nullptr;
    definition& d = found->second;
    const bool is_cycle = of.type() == wait_kind && of.header(tick_header::plan).value_or("").ends_with(" after each");
    if (d.is_cycle() || is_cycle) return d.is_cycle() && is_cycle ? &d : nullptr;
    return of.type() == wait_kind || of.header(tick_header::plan) == d.plan.text() ? &d : nullptr;
}

} // namespace detail

using detail::scheduler_state;

job_scheduler::job_scheduler(scheduler_parts parts, scheduler_options options, std::uint64_t seed)
    : state_(std::make_shared<scheduler_state>(parts, std::move(options), seed)) {}

job_scheduler::~job_scheduler() {
    {
        const std::lock_guard lock(state_->mutex);
        if (!state_->started || std::exchange(state_->stopping, true)) return;
    }
    state_->waker.set();
    outlive(state_, state_->loop); // it went away without a stop
}

result<void> job_scheduler::add(recurring_job which) {
    return state_->add(std::move(which));
}

result<void> job_scheduler::add_kinds(job_registry& to) {
    auto added = to.add(std::make_unique<detail::scheduler_kind>(tick_kind, state_, &scheduler_state::on_tick));
    if (!added) return added;
    return to.add(std::make_unique<detail::scheduler_kind>(wait_kind, state_, &scheduler_state::on_wait));
}

std::vector<std::string> job_scheduler::node_queues() const {
    std::vector<std::string> all;
    for (const auto& [name, d] : state_->definitions)
        if (d.when().per_node && std::ranges::find(all, d.queue) == all.end()) all.push_back(d.queue);
    return all;
}

bool job_scheduler::empty() const noexcept {
    return state_->definitions.empty();
}

result<void> job_scheduler::start() {
    if (state_->how.ensure_every <= duration::zero())
        return fail(errc::invalid_argument, "scheduler: .ensure_every must be longer than 0");
    if (std::exchange(state_->started, true)) return fail(errc::invalid_argument, "scheduler: it was started already");
    state_->loop.spawn(scheduler_state::keep_up(state_));
    return {};
}

task<void> job_scheduler::stop() {
    const auto s = state_;
    {
        const std::lock_guard lock(s->mutex);
        if (!s->started || std::exchange(s->stopping, true)) co_return;
    }
    s->waker.set();
    auto joining = s->loop.join();
    co_await std::move(joining);
}

} // namespace holdfast
