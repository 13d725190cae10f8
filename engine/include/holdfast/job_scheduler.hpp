// Fires recurring jobs, each slot once in the fleet. There is no leader: the store keeps the chain. The next slot of a
// schedule is a small job of kind "holdfast.tick", whose id follows from the slot; the worker that claims it enqueues
// the run, whose id follows from the slot too, and the next tick. Doing any of that twice changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_registry.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/schedule.hpp>
#include <holdfast/store.hpp>
#include <holdfast/task.hpp>
#include <holdfast/time_zone.hpp>

namespace holdfast {

inline constexpr std::string_view tick_kind = "holdfast.tick"; // a slot to come
inline constexpr std::string_view wait_kind = "holdfast.wait"; // looks after a run until it has ended

struct scheduler_options {
    std::string node{};                              // who this is, the same after a restart: for per_node
    duration ensure_every = std::chrono::minutes{1}; // looks whether a tick is missing; jittered
    // A tick of a schedule that is not known here, or has other slots here, is left to other workers for that long at
    // least, and dropped when so much time has gone by since its slot (for a run that is waited for, a day): nobody has
    // that schedule any more.
    duration unknown_delay = std::chrono::seconds{10};
    duration forget_after = std::chrono::minutes{10};
};

// All of it must outlive the scheduler, and the workers that run its kinds.
struct scheduler_parts {
    runtime& on;
    holdfast::store& store; // for its clock: no other counts
    holdfast::jobs& client; // of that store
    logger& log;
    time_zones& zones;
};

struct schedule_status {
    std::string name;
    std::string job;
    std::string queue;
    std::string when;                     // "0 3 * * * Europe/Berlin", "every 5m", "5m after each", "at start"
    std::optional<store_time> next_due{}; // nothing: at the next start, or after the run that has not ended
    bool chained = false;                 // the store has what fires it next
    std::optional<identifier> last_run{}; // the latest that is known of
    std::optional<job_state> last_state{};
    // By this process since it started:
    std::uint64_t fired = 0;
    std::uint64_t skipped = 0; // the run before had not ended
    std::uint64_t missed = 0;  // left out by the misfire rule
};

namespace detail {
struct scheduler_state;
}

// Any thread. Everything is added before start(); stop() is awaited before it goes away, after the worker's stop.
class job_scheduler {
public:
    // `seed` fixes every random draw; 0 takes one from the system.
    explicit job_scheduler(scheduler_parts parts, scheduler_options options = {}, std::uint64_t seed = 0);
    ~job_scheduler();
    job_scheduler(const job_scheduler&) = delete;
    job_scheduler& operator=(const job_scheduler&) = delete;

    // errc::duplicate: the name is taken. errc::invalid_argument: the schedule breaks a rule. Or its zone is unknown.
    result<void> add(recurring_job which);
    // The kinds that a worker must have to fire schedules, when all are added. It must work on the queues of their jobs,
    // and on these.
    result<void> add_kinds(job_registry& to);
    std::vector<std::string> node_queues() const; // of per_node schedules
    bool empty() const noexcept;

    result<void> start();
    task<void> stop();

    // In the order of their names.
    task<result<std::vector<schedule_status>>> inspect();

private:
    std::shared_ptr<detail::scheduler_state> state_;
};

} // namespace holdfast
