// SQLite against the state machine: whatever happens to a job, the file says what job_machine.hpp says.
#include <map>
#include <string>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/job_machine.hpp>

#include "catch.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;
using namespace holdfast::test::sqlite;
using namespace std::chrono_literals;

namespace {

std::string story(const job_view& job, job_state state) {
    std::string text = std::string(to_text(state)) + " attempts " + std::to_string(job.attempts) + " crashes " +
                       std::to_string(job.crash_count) + " generation " + std::to_string(job.generation) +
                       (job.cancel_requested ? " cancel" : "") + (job.ended ? " ended" : "") +
                       (job.leased_until ? " leased" : "") + " by '" + job.worker + "' error " + job.last_error.type +
                       "/" + job.last_error.message + " output " + job.output + ":";
    for (const auto& each : job.history)
        text += " " + std::to_string(each.generation) + "." + std::to_string(each.number) + " " + each.outcome + " " +
                each.worker + " " + each.error.message + (each.ended ? "" : "...");
    return text;
}

// The jobs twice: in the file, and as records that the machine alone changes.
class twins {
public:
    explicit twins(std::uint64_t seed) : random_(seed) {}

    void step() {
        switch (below(8)) {
        case 0: add(); break;
        case 1:
        case 2: claim(); break;
        case 3:
        case 4: settle(); break;
        case 5: recover(); break;
        case 6: cancel(); break;
        default: requeue(); break;
        }
    }
    void compare() {
        for (const auto& [id, expected] : records_) {
            const auto found = std::get<job_view>(at_.await(at_.jobs().get(id)));
            CHECK(story(found, found.state) == story(expected.job, job_machine::seen_state(expected, now())));
        }
    }

private:
    std::uint64_t below(std::uint64_t n) { return random_.next() % n; }
    store_time now() { return at_.await(at_.kept->now()); }

    void add() {
        auto j = at_.job();
        j.max_attempts = 1 + static_cast<int>(below(3));
        j.max_crashes = static_cast<int>(below(3));
        j.may_restart = below(3) != 0;
        at_.await(at_.jobs().enqueue({j}));
        records_.emplace(j.id, job_machine::make(j, now()));
    }
    void claim() {
        const duration lease = below(2) == 0 ? duration(1us) : duration(1h);
        for (auto& each : at_.claim(2, lease)) {
            auto& r = records_.at(each.id);
            REQUIRE(job_machine::claimable(r, now()));
            job_machine::claim(r, "w", lease, now());
            CHECK(each.attempt == r.job.attempts);
            if (below(2) == 0) {
                const job_lease* which[] = {&each.lease};
                CHECK(at_.await(at_.jobs().started(which)).at(0) == write_answer::done);
                r.started = true;
            }
            leases_.push_back({std::move(each.lease), each.id, r.token});
        }
    }
    // With any lease that was ever given out, so most are stale.
    void settle() {
        if (leases_.empty()) return;
        const auto& held = leases_[leases_.size() - 1 - below(std::min<std::size_t>(leases_.size(), 3))];
        settlement how{&held.lease, static_cast<settlement::kind>(below(8)), {}, {}, below(2) == 0 ? "" : "output"};
        if (how.how == settlement::kind::retry || how.how == settlement::kind::snooze)
            if (below(2) == 0) how.when = due::after(1h);
        if (below(2) == 0) how.error = {"type", "message " + std::to_string(below(100))};
        const settlement one[] = {how};
        const auto found = at_.await(at_.jobs().settle(one)).at(0);
        const auto expected = job_machine::settle(records_.at(held.id), held.token, how, now());
        CHECK(found.answer == expected.answer);
        CHECK(found.now == expected.now);
    }
    void recover() {
        const auto found = at_.await(at_.jobs().recover_stale(1000));
        int expected = 0;
        for (auto& [id, r] : records_)
            expected += job_machine::recover(r, now()) != job_machine::recovered::not_stale ? 1 : 0;
        CHECK(found.total() == expected);
    }
    void cancel() {
        if (records_.empty()) return;
        auto& [id, r] = *std::next(records_.begin(), static_cast<long>(below(records_.size())));
        CHECK(at_.await(at_.jobs().cancel({id})).at(0) == job_machine::cancel(r, now()));
    }
    void requeue() {
        if (records_.empty()) return;
        auto& [id, r] = *std::next(records_.begin(), static_cast<long>(below(records_.size())));
        CHECK(at_.await(at_.jobs().requeue({id})) == (job_machine::requeue(r, now()) ? 1 : 0));
    }

    struct given {
        job_lease lease;
        identifier id;
        std::uint64_t token; // the machine's own count
    };

    desk at_{{{"synchronous", "normal"}}};
    random_series random_;
    std::map<identifier, job_machine::record> records_;
    std::vector<given> leases_;
};

} // namespace

TEST_CASE("sqlite: five hundred random calls leave every job as the state machine would") {
    for (const std::uint64_t seed : {1, 2, 3}) {
        INFO("seed " << seed);
        twins both(seed);
        for (int i = 0; i < 500; ++i) {
            both.step();
            if (i % 20 == 19) both.compare();
        }
        both.compare();
    }
}
