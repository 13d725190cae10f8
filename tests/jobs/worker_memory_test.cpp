// A worker that has done a million jobs is no larger than one that has done a few.
#include <atomic>
#include <thread>

#include <malloc.h>

#include "catch.hpp"
#include "jobs/worker_lab.hpp"
#include "runtimes/under_test.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

// A store that always has jobs, until so many have been claimed, and keeps nothing.
class endless_jobs final : public job_store {
public:
    explicit endless_jobs(int total) : left_(total) {}

    task<result<std::vector<claimed_job>>> claim(claim_request request) override {
        std::vector<claimed_job> claimed;
        for (int i = 0; i < request.limit && left_.fetch_sub(1) > 0; ++i) {
            const identifier id = ids_.next();
            claimed.push_back({.lease = job_lease(to_text(id), 1),
                               .id = id,
                               .what = {"work", 1, "text/plain", "body"},
                               .queue = "default",
                               .extra = {{"correlation-id", "c"}}});
        }
        co_return claimed;
    }
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work*) override {
        co_return std::vector<settled>(which.size());
    }
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration) override {
        co_return std::vector<beat>(held.size());
    }
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override {
        co_return std::vector<write_answer>(which.size());
    }
    task<result<recovery>> recover_stale(int) override { co_return recovery{}; }
    task<result<std::optional<duration>>> next_due(std::vector<std::string>) override { co_return std::nullopt; }

    task<result<std::vector<enqueued>>> enqueue(std::vector<new_job>, unit_of_work*) override {
        return no<std::vector<enqueued>>();
    }
    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const>) override {
        return no<std::vector<write_answer>>();
    }
    task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier>) override {
        return no<std::vector<cancel_answer>>();
    }
    task<result<int>> requeue(std::vector<identifier>) override { return no<int>(); }
    task<result<int>> purge(job_state, duration, int) override { return no<int>(); }
    task<result<void>> pause(std::string) override { return no<void>(); }
    task<result<void>> resume(std::string) override { return no<void>(); }
    task<result<std::vector<queue_view>>> queues() override { return no<std::vector<queue_view>>(); }
    task<result<job_lookup>> get(identifier) override { return no<job_lookup>(); }
    task<result<job_page>> list(job_filter, int, std::string) override { return no<job_page>(); }
    task<result<std::vector<job_count>>> counts() override { return no<std::vector<job_count>>(); }

private:
    template <class T>
    static task<result<T>> no() {
        co_return fail(errc::unsupported, "not here");
    }
    std::atomic<int> left_;
    identifier_source ids_;
};

task<result<void>> handle(job_context& c) {
    c.progress(50, "half");
    c.output("done");
    const auto chance = c.job_id().bytes[15] % 10;
    if (chance == 0) throw std::runtime_error("one in ten");
    if (chance == 1) co_await c.sleep_for(100us);
    co_return result<void>{};
}

std::size_t heap_in_use() {
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

} // namespace

TEST_CASE("memory stays flat over a million jobs") {
    constexpr int total = 1'000'000;
    testing::runtime_under_test on{{.threads = 2}};
    endless_jobs store(total);
    job_registry kinds;
    test::kept_log log;
    REQUIRE(kinds.add(std::make_unique<test::any_job>(job_options{.name = "work"},
                                                      [](payload, job_context& c) { return handle(c); })));
    job_worker worker({on, store, kinds, log}, {.concurrency = 200, .poll = 1h});
    REQUIRE(worker.start());
    std::size_t early = 0;
    const auto ended = [&] {
        const auto seen = worker.snapshot();
        return seen.succeeded + seen.retried;
    };
    for (const auto end = std::chrono::steady_clock::now() + 110s;
         ended() < total && std::chrono::steady_clock::now() < end;) {
        std::this_thread::sleep_for(5ms);
        if (early == 0 && ended() > total / 10) early = heap_in_use();
    }
    REQUIRE(ended() == total);
    const std::size_t late = heap_in_use();
    INFO("in use after a tenth of them: " << early << ", at the end: " << late);
    CHECK(late < early + (4u << 20)); // what is in flight differs from moment to moment
    sync_wait(worker.stop());
    on.stop();
}
