// Durable jobs: the records, who may work on them, and what became of them. The rules that every store keeps are pure
// code in job_machine.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/task.hpp>
#include <holdfast/unit_of_work.hpp>

namespace holdfast {

enum class job_state : unsigned char {
    scheduled,     // due later, or waiting for its parent
    pending,       // due
    processing,    // leased by a worker
    waiting_retry, // failed, due again later
    succeeded,
    failed,      // crashed and may not be restarted
    dead_letter, // attempts or crashes spent, or given up
    cancelled,
    indeterminate, // nobody knows whether it happened
};
inline constexpr int job_state_count = 9;

constexpr std::string_view to_text(job_state s) noexcept {
    switch (s) {
    case job_state::scheduled: return "scheduled";
    case job_state::pending: return "pending";
    case job_state::processing: return "processing";
    case job_state::waiting_retry: return "waiting_retry";
    case job_state::succeeded: return "succeeded";
    case job_state::failed: return "failed";
    case job_state::dead_letter: return "dead_letter";
    case job_state::cancelled: return "cancelled";
    case job_state::indeterminate: return "indeterminate";
    }
    return "unknown";
}
constexpr bool is_final(job_state s) noexcept {
    return s >= job_state::succeeded;
}

struct of_job;
using job_lease = lease<of_job>; // subject: the job's id as text

struct new_job {
    identifier id; // chosen by the client: enqueueing the same id again changes nothing and is no error
    payload what;
    std::string queue = "default";
    int priority = 0; // higher first
    due when;
    int max_attempts = 3;
    int max_crashes = 3;
    bool may_restart = true;
    std::optional<std::string> unique_key{}; // at most one unfinished job of its type has it
    std::optional<identifier> parent{};      // waits until that one has succeeded; an unknown one holds nothing up
    std::optional<duration> keep_for{};      // after success; nothing = the store's default, 0 = not at all
    headers extra{};

    // They may differ in id, payload, headers, unique key and parent alone: those of a bulk mostly are so.
    bool same_terms(const new_job& other) const noexcept {
        return queue == other.queue && priority == other.priority && when.how == other.when.how &&
               when.delay == other.when.delay && when.time == other.when.time && max_attempts == other.max_attempts &&
               max_crashes == other.max_crashes && may_restart == other.may_restart && keep_for == other.keep_for;
    }
};

struct enqueued {
    identifier id;       // of the job that there is now
    bool created = true; // false: it was there already, by id or by unique key

    friend bool operator==(const enqueued&, const enqueued&) = default;
};

struct claim_request {
    std::vector<std::string> queues; // in order of preference; priorities count within a queue
    int limit = 1;
    duration lease_for = std::chrono::seconds{60};
    std::string worker;
    // When there is less to claim than `limit`: the address of a watch that may be handed, once per queue and on the terms
    // of this request, a job that comes later. Empty: none.
    std::string then_hand_to{};
};

struct claimed_job {
    job_lease lease; // job id and token together also name the run
    identifier id;
    payload what;
    std::string queue;
    int priority = 0;
    int attempt = 1; // this one's number in its generation
    int max_attempts = 1;
    int crash_count = 0;
    int generation = 1;
    bool may_restart = true;
    bool cancel_requested = false;
    headers extra;
};

struct beat {
    write_answer answer = write_answer::done; // stale or gone: stop working on it
    bool cancel_requested = false;
};

struct job_error {
    std::string type;
    std::string message;
};

struct settlement {
    enum class kind : unsigned char {
        succeed,
        retry, // at `when`; dead_letter when that was the last attempt
        dead_letter,
        fail,
        cancel,
        release, // back to pending as if never claimed: no attempt burnt
        snooze,  // again at `when`: no attempt burnt
        indeterminate,
    };
    const job_lease* held = nullptr;
    kind how = kind::succeed;
    due when{};
    job_error error{};
    std::string output{};
};

struct settled {
    write_answer answer = write_answer::done;
    job_state now = job_state::succeeded; // when done

    friend bool operator==(const settled&, const settled&) = default;
};

struct progress_report {
    const job_lease* held = nullptr;
    int percent = 0;
    std::string note;
};

struct recovery {
    int requeued = 0;
    int failed = 0;
    int deleted = 0;     // cancelled by its user
    int dead_letter = 0; // crashed too often
    int total() const noexcept { return requeued + failed + deleted + dead_letter; }
};

struct attempt_entry {
    int generation = 1;
    int number = 1;
    std::uint64_t token = 0;
    std::string worker;
    store_time started{};
    std::optional<store_time> ended{};
    std::string outcome; // "running", "succeeded", "retry", "crashed", …
    job_error error{};
};

struct job_view {
    identifier id;
    payload what;
    std::string queue;
    int priority = 0;
    job_state state = job_state::pending;
    store_time created{};
    store_time due_at{};
    std::optional<store_time> ended{};
    int attempts = 0;
    int max_attempts = 0;
    int crash_count = 0;
    int max_crashes = 0;
    int generation = 1;
    bool may_restart = true;
    bool cancel_requested = false;
    std::string worker{};
    std::optional<store_time> leased_until{};
    std::optional<std::string> unique_key{};
    std::optional<identifier> parent{};
    headers extra{};
    int percent = 0;
    std::string note{};
    job_error last_error{};
    std::string output{};
    std::vector<attempt_entry> history{}; // oldest first; only from get()
};

enum class job_absence : unsigned char { never_known, expired };
using job_lookup = std::variant<job_view, job_absence>;

struct job_filter {
    std::optional<job_state> state{};
    std::optional<std::string> queue{};
    std::optional<std::string> type{};
};
struct job_page {
    std::vector<job_view> jobs; // newest first
    std::string next;           // pass it on for the next page; empty: there is none
};
struct job_count {
    std::string queue;
    job_state state;
    std::uint64_t count;
};
struct queue_view {
    std::string name;
    bool paused = false;
};
enum class cancel_answer : unsigned char { cancelled, requested, not_found, already_ended };

constexpr std::string_view to_text(cancel_answer a) noexcept {
    switch (a) {
    case cancel_answer::cancelled: return "cancelled";
    case cancel_answer::requested: return "requested";
    case cancel_answer::not_found: return "not found";
    case cancel_answer::already_ended: return "already ended";
    }
    return "unknown";
}

// Hints go on while it lives; its destructor waits for a hint under way and must not run inside one.
class job_watch {
public:
    virtual ~job_watch() = default;
    // For claim_request::then_hand_to; empty: nothing is handed to it.
    virtual std::string address() const { return {}; }
};

// Any thread. Spans must stay valid until the task has ended. All times are judged by the store's clock.
class job_store {
public:
    virtual task<result<std::vector<enqueued>>> enqueue(std::vector<new_job> jobs, unit_of_work* in = nullptr) = 0;

    virtual task<result<std::vector<claimed_job>>> claim(claim_request request) = 0;
    // The handler is about to run: from here on a crash counts as "started".
    virtual task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) = 0;
    virtual task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) = 0;
    virtual task<result<std::vector<settled>>> settle(std::span<const settlement> which,
                                                      unit_of_work* in = nullptr) = 0;
    virtual task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) = 0;

    // Ends the leases that have run out, by the rules of job_machine.hpp; at most `limit` of them.
    virtual task<result<recovery>> recover_stale(int limit) = 0;
    // How long until something may be claimable, as far as the store can tell; nothing = nothing is scheduled.
    virtual task<result<std::optional<duration>>> next_due(std::vector<std::string> queues) = 0;
    // Calls `hint`, on any thread, soon after somebody, other processes included, has made a job in one of these queues
    // claimable: by enqueueing, settling, requeueing or resuming; falling due makes no hint. Hints are only that: several may come as
    // one, one may come for nothing or get lost, so callers poll as well. `hint` must not throw, and must be quick, but on a
    // thread that the store lends for it (thread_loan::listener). Null: this store gives none.
    virtual std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint) {
        static_cast<void>(queues);
        static_cast<void>(hint);
        return nullptr;
    }
    // The same, for a worker. A store may spare an idle one the claim: whoever enqueues a job claims it in the same write for
    // a watch that a claim has named as then_hand_to, and `handed` gets it, by the rules of `hint`. It is a claim like any other:
    // what gets lost on the way comes back when its lease has run out. Nothing is handed over in a queue that is paused, and
    // what comes for a watch that is gone is released.
    virtual std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                              std::function<void(claimed_job)> handed) {
        static_cast<void>(handed);
        return watch(std::move(queues), std::move(hint));
    }

    virtual task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier> which) = 0;
    // dead_letter, failed, cancelled and indeterminate jobs start a new generation, due now. The number of those; one
    // whose unique key another unfinished job has by now is left alone.
    virtual task<result<int>> requeue(std::vector<identifier> which) = 0;
    // Forgets jobs of that final state which ended longer ago than `older_than`; leaves a note that they existed.
    virtual task<result<int>> purge(job_state state, duration older_than, int limit) = 0;
    // Forgets these jobs, and leaves a note; those that have not ended are left alone. The number of those forgotten.
    virtual task<result<int>> discard(std::vector<identifier> which) {
        static_cast<void>(which);
        co_return fail(errc::unsupported, "this store cannot discard single jobs");
    }

    virtual task<result<void>> pause(std::string queue) = 0;
    virtual task<result<void>> resume(std::string queue) = 0;
    virtual task<result<std::vector<queue_view>>> queues() = 0;

    virtual task<result<job_lookup>> get(identifier id) = 0;
    virtual task<result<job_page>> list(job_filter filter, int limit, std::string cursor = {}) = 0;
    virtual task<result<std::vector<job_count>>> counts() = 0;

protected:
    ~job_store() = default;
};

} // namespace holdfast
