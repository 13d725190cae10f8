// Jobs: those that the store hands to a worker that has said that it waits. A store may hand over none; one that does
// claims them as a claim would have.
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

constexpr auto patience = 10s; // much longer than it takes

// A worker that waits for what it is handed.
class idle_worker {
public:
    idle_worker(const job_user& user, store_lab& in, std::string name = "idle",
                std::vector<std::string> queues = {"default"})
        : user_(user), in_(in), name_(std::move(name)), queues_(std::move(queues)) {
        watch_ = user.jobs().attend(
            queues_, [this] { ++hints_; },
            [this](claimed_job job) {
                const std::lock_guard lock(mutex_);
                got_.push_back(std::move(job));
            });
        if (watch_ == nullptr || watch_->address().empty()) throw case_skipped(not_offered);
        // It cannot be reached before the store has heard that it listens; its first hint comes then at the latest.
        const auto give_up = std::chrono::steady_clock::now() + patience;
        while (hints_ == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(200us);
    }

    // Claims, and says that it waits for more.
    std::vector<claimed_job> claim(int limit = 10, duration lease_for = long_lease) const {
        return in_.ok(user_.jobs().claim({queues_, limit, lease_for, name_, watch_->address()}), "claim");
    }
    std::vector<claimed_job> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(got_, {});
    }
    // What it is handed, or else what it finds after a hint; one, soon.
    claimed_job one_more(std::string_view what) {
        const auto give_up = std::chrono::steady_clock::now() + patience;
        for (;;) {
            if (auto got = take(); !got.empty()) {
                check_equal(got.size(), std::size_t{1}, "jobs that were handed over at once");
                handed_ = true;
                return std::move(got.front());
            }
            if (auto found = claim(1); !found.empty()) {
                handed_ = false;
                return std::move(found.front());
            }
            if (std::chrono::steady_clock::now() > give_up) fail_check("no job came after " + std::string(what));
            std::this_thread::sleep_for(1ms);
        }
    }
    bool was_handed() const noexcept { return handed_; }
    void end() { watch_.reset(); }

private:
    const job_user& user_;
    store_lab& in_;
    const std::string name_;
    const std::vector<std::string> queues_;
    std::mutex mutex_;
    std::vector<claimed_job> got_;
    std::atomic<int> hints_ = 0;
    bool handed_ = false;
    std::unique_ptr<job_watch> watch_;
};

// What is not handed over must be found by a claim; what is must not.
void once_for_all(store_lab& in) {
    const job_user user(in);
    const job_user there(in, *in.other().jobs());
    idle_worker worker(user, in);
    int handed = 0;
    for (int i = 0; i < 50; ++i) {
        check(worker.claim().empty(), "nothing to claim in between");
        const identifier id = (i % 2 == 0 ? user : there).add();
        const claimed_job got = worker.one_more("a job was enqueued");
        check_equal(got.id, id, "the job");
        handed += worker.was_handed() ? 1 : 0;
        check(worker.claim().empty() && worker.take().empty(), "it comes once");
        check_equal(user.settle(got.lease, kind::succeed), settled{}, "its settlement");
    }
    check(handed > 0, "some are handed over, if the store does that at all");
}

void on_the_terms_of_the_claim(store_lab& in) {
    const job_user user(in);
    idle_worker worker(user, in, "the idle one");
    check(worker.claim(10, 3min).empty(), "nothing to claim");
    new_job job = user.make();
    job.priority = 7;
    job.max_attempts = 2;
    job.may_restart = false;
    job.extra = {{"trace", "a\0b"}};
    job.what.body = std::string("\0 body", 6);
    user.add(job);
    const claimed_job got = worker.one_more("a job was enqueued");
    check_equal(got.what.body, job.what.body, "its body");
    check_equal(got.what.type, job.what.type, "its type");
    check(got.extra == job.extra, "its headers");
    check_equal(got.priority, 7, "its priority");
    check_equal(got.attempt, 1, "its attempt");
    check_equal(got.max_attempts, 2, "its maximum");
    check(!got.may_restart, "its restart rule");
    const job_view seen = user.view(job.id);
    check_equal(seen.state, job_state::processing, "its state");
    check_equal(seen.worker, std::string("the idle one"), "its worker");
    check_equal(seen.attempts, 1, "its attempts");
    check(seen.leased_until && *seen.leased_until > seen.created + 2min, "its lease");
    check_equal(seen.history.size(), std::size_t{1}, "its history");
    check_equal(user.count("default", job_state::processing), std::uint64_t{1}, "jobs in work");
    check_equal(user.heartbeat(got.lease).answer, write_answer::done, "a heartbeat");
    check_equal(user.retry(got.lease, 0s).now, job_state::waiting_retry, "a retry");
    check_equal(user.settle(got.lease, kind::succeed).answer, write_answer::stale, "a settlement after that");
    const claimed_job again = worker.one_more("the retry fell due");
    check_equal(again.attempt, 2, "the next attempt");
    check(again.lease.token() > got.lease.token(), "tokens grow");
}

void not_when_paused(store_lab& in) {
    const job_user user(in);
    idle_worker worker(user, in);
    check(worker.claim().empty(), "nothing to claim");
    in.ok(user.jobs().pause("default"), "pause");
    const identifier id = user.add();
    check(worker.claim().empty(), "a claim in a paused queue");
    const identifier next = user.add();
    in.pass(20ms);
    check(worker.take().empty(), "nothing is handed over in a paused queue");
    in.ok(user.jobs().resume("default"), "resume");
    const auto found = user.claim_ids(10);
    check(found == std::vector{id, next}, "they are all there when it is resumed");
}

void not_when_busy(store_lab& in) {
    const job_user user(in);
    idle_worker worker(user, in);
    check(worker.claim(2).empty(), "nothing to claim");
    user.add(2);
    check_equal(worker.claim(2).size(), std::size_t{2}, "jobs that fill it");
    const identifier id = user.add();
    in.pass(20ms);
    check(worker.take().empty(), "one that got all that it asked for is not idle");
    check_equal(user.claim_one().id, id, "what another claims");
}

void behind_others(store_lab& in) {
    const job_user user(in);
    idle_worker worker(user, in);
    check(worker.claim().empty(), "nothing to claim");
    const auto first = user.add(3);
    const identifier last = user.add();
    std::vector<identifier> all;
    for (const claimed_job& each : worker.claim()) all.push_back(each.id);
    auto expected = first;
    expected.push_back(last);
    check(worker.take().empty(), "nobody overtakes those that wait");
    check(all == expected, "the order of those that wait");
}

void watch_has_ended(store_lab& in) {
    const job_user user(in);
    auto worker = std::make_unique<idle_worker>(user, in);
    check(worker->claim().empty(), "nothing to claim");
    worker->end();
    const identifier id = user.add();
    const auto give_up = std::chrono::steady_clock::now() + patience;
    std::vector<claimed_job> found;
    while (found.empty() && std::chrono::steady_clock::now() < give_up) {
        found = user.claim(1);
        if (found.empty()) std::this_thread::sleep_for(1ms);
    }
    check_equal(found.size(), std::size_t{1}, "the job comes back");
    check_equal(found.front().id, id, "the job");
    check_equal(found.front().attempt, 1, "no attempt is burnt");
    check(worker->take().empty(), "a watch that has ended gets nothing");
}

void several_at_once(store_lab& in) {
    constexpr int each_adds = 100;
    const job_user user(in);
    idle_worker first(user, in, "first");
    idle_worker second(user, in, "second");
    std::map<identifier, int> times;
    const auto add = [&] {
        for (int i = 0; i < each_adds; ++i) static_cast<void>(in.await(user.jobs().enqueue({user.make()})));
    };
    std::jthread one(add);
    std::jthread two(add);
    const auto give_up = std::chrono::steady_clock::now() + 2 * patience;
    std::size_t total = 0;
    while (total < 2 * each_adds && std::chrono::steady_clock::now() < give_up) {
        for (idle_worker* worker : {&first, &second}) {
            auto got = worker->take();
            for (claimed_job& more : worker->claim(3)) got.push_back(std::move(more));
            for (const claimed_job& job : got) {
                ++times[job.id];
                ++total;
                check_equal(user.settle(job.lease, kind::succeed).answer, write_answer::done, "its settlement");
            }
        }
    }
    one.join();
    two.join();
    check_equal(total, std::size_t{2 * each_adds}, "jobs that came");
    check_equal(times.size(), std::size_t{2 * each_adds}, "different ones");
    check(user.claim(10).empty() && first.take().empty() && second.take().empty(), "nothing is left");
}

} // namespace

store_case_list job_handover_cases() {
    return {
        {"a job is handed to an idle worker or can be claimed, once", &once_for_all},
        {"a job is handed over on the terms of the claim", &on_the_terms_of_the_claim},
        {"nothing is handed over in a paused queue", &not_when_paused},
        {"nothing is handed to a worker that got all it asked for", &not_when_busy},
        {"what is handed over overtakes nobody", &behind_others},
        {"what was handed to a watch that has ended comes back unburnt", &watch_has_ended},
        {"several enqueue for several idle workers, each job once", &several_at_once},
    };
}

} // namespace holdfast::conformance
