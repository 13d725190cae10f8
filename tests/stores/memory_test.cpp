#include <memory>
#include <string>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/store_conformance.hpp>
#include <holdfast/sync_wait.hpp>

#include "catch.hpp"
#include "memory_store.hpp"
#include "stores/race.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

// Every case but those that a store cannot pass that goes with its process.
void passes(runtime& on) {
    const conformance::store_bed bed{[&] { return memory::make_store({}, &on); }, {}, &on, {}};
    std::string wrong;
    const auto total = conformance::run_store_suite(bed, {}, [&](const conformance::case_result& r) {
        if (r.state == conformance::case_result::passed) return;
        for (const std::string_view why :
             {conformance::not_offered, "the store is not shared", "the store says that nothing survives its process"})
            if (r.state == conformance::case_result::skipped && r.message == why) return;
        wrong += r.title() + ": " + r.message + "\n";
    });
    CHECK(wrong == "");
    CHECK(total.passed > 170);
}

// A store whose jobs facet does one thing wrong.
class careless_jobs final : public job_store {
public:
    explicit careless_jobs(job_store& inner) : inner_(inner) {}
    task<result<std::vector<enqueued>>> enqueue(std::vector<new_job> jobs, unit_of_work* in) override {
        return inner_.enqueue(std::move(jobs), in);
    }
    task<result<std::vector<claimed_job>>> claim(claim_request request) override {
        return inner_.claim(std::move(request));
    }
    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) override {
        return inner_.started(which);
    }
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) override {
        return inner_.heartbeat(held, lease_for);
    }
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work* in) override {
        return inner_.settle(which, in);
    }
    // Says that it was done, whoever asks.
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override {
        co_return std::vector<write_answer>(which.size(), write_answer::done);
    }
    task<result<recovery>> recover_stale(int limit) override { return inner_.recover_stale(limit); }
    task<result<std::optional<duration>>> next_due(std::vector<std::string> queues) override {
        return inner_.next_due(std::move(queues));
    }
    task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier> which) override {
        return inner_.cancel(std::move(which));
    }
    task<result<int>> requeue(std::vector<identifier> which) override { return inner_.requeue(std::move(which)); }
    task<result<int>> purge(job_state state, duration older_than, int limit) override {
        return inner_.purge(state, older_than, limit);
    }
    task<result<void>> pause(std::string queue) override { return inner_.pause(std::move(queue)); }
    task<result<void>> resume(std::string queue) override { return inner_.resume(std::move(queue)); }
    task<result<std::vector<queue_view>>> queues() override { return inner_.queues(); }
    task<result<job_lookup>> get(identifier id) override { return inner_.get(id); }
    task<result<job_page>> list(job_filter filter, int limit, std::string cursor) override {
        return inner_.list(std::move(filter), limit, std::move(cursor));
    }
    task<result<std::vector<job_count>>> counts() override { return inner_.counts(); }

private:
    job_store& inner_;
};

class careless_store final : public store {
public:
    explicit careless_store(std::unique_ptr<store> inner) : inner_(std::move(inner)), jobs_(*inner_->jobs()) {}
    std::string_view name() const noexcept override { return "careless"; }
    store_capabilities capabilities() const override {
        auto can = inner_->capabilities();
        can.units_of_work = false;
        return can;
    }
    job_store* jobs() noexcept override { return &jobs_; }
    task<result<void>> prepare() override { return inner_->prepare(); }
    task<result<store_time>> now() override { return inner_->now(); }
    task<result<void>> destroy() override { return inner_->destroy(); }

private:
    std::unique_ptr<store> inner_;
    careless_jobs jobs_;
};

} // namespace

TEST_CASE("the memory store passes every conformance case on virtual time, in any order") {
    const auto seed = GENERATE(0, 1, 2, 3);
    simulated_runtime on(static_cast<std::uint64_t>(seed));
    passes(on);
}

TEST_CASE("the memory store passes every conformance case on threads") {
    asio_runtime on(asio_options{.threads = 4});
    passes(on);
    on.stop();
}

TEST_CASE("a store that accepts a stale write does not pass, and what it does not offer is skipped") {
    simulated_runtime on;
    const conformance::store_bed bed{
        [&] { return std::make_unique<careless_store>(memory::make_store({}, &on)); }, {}, &on, {}};
    std::string failures;
    bool locks_skipped = true;
    conformance::run_store_suite(bed, {}, [&](const conformance::case_result& r) {
        if (r.state == conformance::case_result::failed) failures += r.title() + ": " + r.message + "\n";
        if (r.group == "locks" && r.message != conformance::not_offered) locks_skipped = false;
    });
    CHECK(locks_skipped);
    CHECK_THAT(failures, Catch::Matchers::ContainsSubstring("after recovery the old holder can write nothing"));
    CHECK_THAT(failures, Catch::Matchers::ContainsSubstring("progress, by a stale lease: expected stale, found done"));
}

TEST_CASE("the memory store's clock follows the runtime's, so days pass at once") {
    simulated_runtime on;
    const auto made = memory::make_store({}, &on);
    const store_time before = *sync_wait(on, made->now());
    on.advance(std::chrono::hours{24 * 30});
    CHECK(*sync_wait(on, made->now()) - before == std::chrono::hours{24 * 30});
}

TEST_CASE("the memory store forgets what succeeded after its time, and then that it was there") {
    simulated_runtime on;
    const auto made = memory::make_store({.keep = {.succeeded = 1h, .tombstones = 10h}}, &on);
    job_store& jobs = *made->jobs();
    identifier_source ids(1);
    const new_job j{.id = ids.next(), .what = {.type = "t", .body = "{}"}, .when = {}};
    REQUIRE(sync_wait(on, jobs.enqueue({j})));
    const auto claimed = sync_wait(on, jobs.claim({.queues = {"default"}, .limit = 1, .worker = "w"}));
    const settlement done[] = {{.held = &claimed->at(0).lease}};
    REQUIRE(sync_wait(on, jobs.settle(done)));
    const auto look = [&] { return *sync_wait(on, jobs.get(j.id)); };

    on.advance(30min);
    REQUIRE(sync_wait(on, jobs.recover_stale(10)));
    CHECK(std::holds_alternative<job_view>(look()));
    on.advance(31min);
    REQUIRE(sync_wait(on, jobs.recover_stale(10)));
    CHECK(std::get<job_absence>(look()) == job_absence::expired);
    CHECK_FALSE(sync_wait(on, jobs.enqueue({j}))->at(0).created);
    on.advance(10h);
    CHECK(std::get<job_absence>(look()) == job_absence::never_known);
}

TEST_CASE("one recovery of the memory store forgets all that has been kept for long enough") {
    simulated_runtime on;
    const auto made = memory::make_store({.keep = {.succeeded = 1h, .tombstones = 10h}}, &on);
    job_store& jobs = *made->jobs();
    identifier_source ids(1);
    std::vector<new_job> all;
    for (int i = 0; i < 500; ++i) all.push_back({.id = ids.next(), .what = {.type = "t", .body = "{}"}, .when = {}});
    REQUIRE(sync_wait(on, jobs.enqueue(all)));
    const auto claimed = sync_wait(on, jobs.claim({.queues = {"default"}, .limit = 500, .worker = "w"}));
    std::vector<settlement> done;
    for (const claimed_job& each : *claimed) done.push_back({.held = &each.lease});
    REQUIRE(sync_wait(on, jobs.settle(done)));
    on.advance(2h);
    REQUIRE(sync_wait(on, jobs.recover_stale(10)));
    CHECK(sync_wait(on, jobs.counts())->empty());
}

TEST_CASE("a unit of work that was overtaken fails at its commit and leaves nothing behind") {
    simulated_runtime on;
    const auto made = memory::make_store({}, &on);
    auto unit = std::move(*sync_wait(on, made->begin()));
    identifier_source ids(1);
    const new_job j{.id = ids.next(), .what = {.type = "t", .body = "{}"}, .when = {}};
    REQUIRE(sync_wait(on, made->jobs()->enqueue({j}, unit.get())));
    REQUIRE(*sync_wait(on, made->idempotency()->try_claim("k", 1h, unit.get())));
    REQUIRE(*sync_wait(on, made->idempotency()->try_claim("k", 1h)));

    const auto committed = sync_wait(on, unit->commit());
    REQUIRE_FALSE(committed);
    CHECK(committed.error().code == errc::duplicate);
    const auto found = sync_wait(on, made->jobs()->get(j.id));
    CHECK(std::get<job_absence>(*found) == job_absence::never_known);
}

TEST_CASE("memory: of completion and recovery exactly one counts, whichever comes first") {
    struct desk : test::store_desk {
        desk() { kept = test::open_store("memory", on, {}); }
    } d;
    test::race_completion_against_recovery(d, *d.kept, 100'000);
}
