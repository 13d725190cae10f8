// Runs the jobs of a store on a runtime: claims them ahead of free slots, keeps their leases, settles them in batches,
// recovers what dead workers left behind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/exception_policy.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_isolation.hpp>
#include <holdfast/job_registry.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

struct worker_queue {
    std::string name = "default";
    int weight = 1;      // its share of the work when several queues have some
    int concurrency = 0; // jobs of this queue that run at the same time; 0 = only the worker's own limit
};

struct worker_options {
    std::vector<worker_queue> queues{{}};
    int concurrency = 100; // jobs that run at the same time
    // Jobs held beyond those that run, at most. How many there really are follows how quick jobs are: what the slots
    // get through in about a tenth of a second, so that slow jobs are left for others.
    int prefetch = 1000;
    int batch = 500;                                        // jobs in one call to the store, at most
    duration settle_wait = std::chrono::milliseconds{10};   // the longest that an ended job waits for others to end
    duration lease = std::chrono::seconds{60};              // a worker that is silent for so long counts as dead
    std::optional<duration> heartbeat{};                    // lease / 3
    duration poll = std::chrono::seconds{1};                // looks for work that no hint told of
    duration sweep = std::chrono::seconds{30};              // looks for stale jobs; jittered by a quarter
    int recovery_limit = 100;                               // stale jobs recovered in one call to the store
    duration progress_every = std::chrono::seconds{1};      // progress reports are passed on
    duration unknown_kind_delay = std::chrono::seconds{30}; // a job of a kind that is not registered comes again
    duration shutdown_grace = std::chrono::seconds{30};     // running jobs get so long before their tokens fire
    duration last_wait = std::chrono::seconds{5};           // and so long afterwards; also to write what has ended
    duration kill_after = std::chrono::seconds{3};          // isolated handlers get so long once their tokens fired
    std::string name{};                                     // who holds the leases; empty = host:pid:random
    job_defaults defaults{};                                // for jobs that handlers enqueue
};

// What a worker works with. All of it must outlive the worker, and the handlers that ignored a stop.
struct worker_parts {
    runtime& on;
    job_store& store;
    const job_registry& kinds;
    logger& log;
    holdfast::policies* policies = nullptr;  // for kinds that name a policy
    holdfast::jobs* client = nullptr;        // what handlers enqueue with; null = one of the worker's own
    const exception_policy* rules = nullptr; // for kinds that have none of their own; copied at start
    job_isolation* isolation = nullptr;      // for kinds that ask for it; null = they run in this process
};

struct running_job {
    identifier id;
    std::string type;
    std::string queue;
    int attempt = 1;
    duration running_for{};
    bool stuck = false;         // past its hard deadline; given up, but its slot is still taken
    bool asked_to_stop = false; // its token has fired
};

struct worker_snapshot {
    std::string name;
    bool paused = false;
    bool stopping = false;
    bool store_down = false;          // the latest call to the store failed
    std::vector<running_job> running; // longest first
    int prefetched = 0;               // claimed, not yet begun
    int unsettled = 0;                // ended, not yet written

    // Since the start. What became of claims:
    std::uint64_t claimed = 0;
    std::uint64_t succeeded = 0;
    std::uint64_t retried = 0;
    std::uint64_t dead_lettered = 0;
    std::uint64_t failed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t released = 0;
    std::uint64_t snoozed = 0;
    std::uint64_t indeterminate = 0;
    std::uint64_t lost = 0;      // the lease was gone: nothing was written
    std::uint64_t stuck = 0;     // of those above, given up at their hard deadline
    std::uint64_t discarded = 0; // of the cancelled, those dropped by a rule
    std::uint64_t crashed = 0;   // of those above, their own process died

    recovery last_recovery{}; // the latest that found something
    std::optional<duration> last_recovery_ago{};
    recovery recovered{}; // all of them
};

namespace detail {
struct worker_state;
}

// Any thread. One start and one stop; whoever starts it awaits stop() before it goes away.
class job_worker {
public:
    // `seed` fixes every random draw; 0 takes one from the system.
    explicit job_worker(worker_parts parts, worker_options options = {}, std::uint64_t seed = 0);
    ~job_worker();
    job_worker(const job_worker&) = delete;
    job_worker& operator=(const job_worker&) = delete;

    // errc::invalid_argument, errc::unknown_policy: nothing was started.
    result<void> start();

    // No job is claimed or begun until resume(); what runs goes on, what waits here goes back to the store.
    void pause();
    void resume();

    // Claims nothing more, gives back what it has not begun, waits for the rest: their grace, then their tokens fire,
    // then the last wait. Ends even if the store is away or a handler never ends: snapshot().running tells then.
    task<void> stop(std::optional<duration> grace = std::nullopt); // nothing = shutdown_grace
    // Cuts the grace of a stop short, also of one to come: tokens fire now.
    void stop_now();

    worker_snapshot snapshot() const;
    const std::string& name() const noexcept;

private:
    std::shared_ptr<detail::worker_state> state_;
};

} // namespace holdfast
