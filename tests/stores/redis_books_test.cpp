// The books that the scripts keep beside each job agree with the jobs, whatever was done to them.
#include <chrono>
#include <map>
#include <thread>

#include <holdfast/backoff.hpp>

#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::redis::desk;

namespace {

// Does whatever comes to hand, with a few names that collide.
class bustle {
public:
    bustle(desk& at, std::uint64_t seed) : d_(at), random_(seed) {}

    void step() {
        switch (below(8)) {
        case 0:
        case 1:
        case 2: return enqueue();
        case 3: return claim();
        case 4:
        case 5: return settle();
        case 6: return below(2) == 0 ? cancel() : requeue();
        default: d_.await(d_.jobs().recover_stale(3));
        }
    }
    const std::vector<identifier>& all() const { return ids_; }

private:
    std::size_t below(std::size_t most) { return random_.next() % most; }
    identifier any() { return ids_.empty() ? d_.ids.next() : ids_[below(ids_.size())]; }

    void enqueue() {
        new_job j = d_.job();
        j.queue = below(2) == 0 ? "default" : "other";
        j.priority = static_cast<int>(below(3)) - 1;
        j.max_attempts = 2;
        j.max_crashes = 1;
        j.may_restart = below(4) != 0;
        if (below(3) == 0) j.when = due::after(std::chrono::milliseconds(below(4)));
        if (below(3) == 0) j.unique_key = "k" + std::to_string(below(3));
        if (below(3) == 0) j.parent = any();
        if (below(3) == 0) j.keep_for = 0s;
        if (d_.await(d_.jobs().enqueue({j})).at(0).created) ids_.push_back(j.id);
    }
    void claim() {
        const duration lease_for = below(3) == 0 ? duration(1us) : duration(1h);
        for (auto& each : d_.await(d_.jobs().claim({{"default", "other"}, 3, lease_for, "w"}))) {
            const job_lease* one[] = {&each.lease};
            if (below(2) == 0) d_.await(d_.jobs().started(one));
            held_.push_back(std::move(each));
        }
    }
    void settle() {
        if (held_.empty()) return;
        const std::size_t at = below(held_.size());
        settlement s = d_.success(held_[at]);
        s.how = static_cast<settlement::kind>(below(8));
        s.when = due::after(std::chrono::milliseconds(below(4)));
        const settlement one[] = {s};
        d_.await(d_.jobs().settle(one));
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void cancel() { d_.await(d_.jobs().cancel({any()})); }
    void requeue() { d_.await(d_.jobs().requeue({any(), any()})); }

    desk& d_;
    random_series random_;
    std::vector<identifier> ids_;
    std::vector<claimed_job> held_;
};

using counted = std::map<std::pair<std::string, job_state>, std::uint64_t>;

counted by_counts(desk& d) {
    counted all;
    for (const job_count& each : d.await(d.jobs().counts())) all[{each.queue, each.state}] += each.count;
    return all;
}
counted by_list(desk& d) {
    counted all;
    std::string cursor;
    do {
        job_page page = d.await(d.jobs().list({}, 50, cursor));
        for (const job_view& each : page.jobs) ++all[{each.queue, each.state}];
        cursor = page.next;
    } while (!cursor.empty());
    return all;
}
counted by_get(desk& d, const std::vector<identifier>& ids) {
    counted all;
    for (const identifier& each : ids)
        if (const auto found = d.await(d.jobs().get(each)); std::holds_alternative<job_view>(found))
            ++all[{std::get<job_view>(found).queue, std::get<job_view>(found).state}];
    return all;
}

} // namespace

TEST_CASE("redis: counts, lists and jobs agree after random work, and nothing is left when all is purged") {
    NEEDS_REDIS();
    harness::redis_server server({.append_only = false});
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        INFO("seed " << seed);
        desk d(server.url());
        bustle work(d, seed);
        for (int i = 0; i < 400; ++i) work.step();
        std::this_thread::sleep_for(6ms); // all that waits is due: the three see the same
        const counted counts = by_counts(d);
        CHECK(counts == by_list(d));
        CHECK(counts == by_get(d, work.all()));
        CHECK(!counts.empty());

        d.await(d.jobs().cancel(work.all()));
        for (auto& each :
             d.await(d.jobs().list({.state = job_state::processing, .queue = {}, .type = {}}, 1000)).jobs) {
            const job_lease lease(to_text(each.id),
                                  std::get<job_view>(d.await(d.jobs().get(each.id))).history.back().token);
            settlement s;
            s.held = &lease;
            const settlement one[] = {s};
            d.await(d.jobs().settle(one));
        }
        for (int state = 4; state < job_state_count; ++state)
            d.await(d.jobs().purge(static_cast<job_state>(state), 0s, 10'000));
        CHECK(by_counts(d).empty());
        CHECK(by_list(d).empty());
        CHECK(server.tell("DBSIZE") == ":3"); // meta, the names of the queues, and the notes of what was
        d.await(d.kept->destroy());
    }
}

TEST_CASE("redis: jobs whose time is over are all forgotten by one sweep, however many") {
    NEEDS_REDIS();
    harness::redis_server server({.append_only = false});
    desk d(server.url(), {{"keep_succeeded", "1ms"}, {"keep_tombstones", "0s"}});
    for (int i = 0; i < 5; ++i) {
        std::vector<new_job> some;
        for (int k = 0; k < 500; ++k) {
            some.push_back(d.job());
            if (k % 2 == 0) some.back().keep_for = 1us;
        }
        d.await(d.jobs().enqueue(some));
        const auto mine = d.await(d.jobs().claim({{"default"}, 500, 1min, "w"}));
        std::vector<settlement> all;
        for (const claimed_job& each : mine) all.push_back(d.success(each));
        d.await(d.jobs().settle(all));
    }
    std::this_thread::sleep_for(2ms);
    CHECK(d.await(d.jobs().recover_stale(10)).total() == 0);
    CHECK(by_list(d).empty());
    CHECK(by_counts(d).empty());
    CHECK(server.tell("DBSIZE") == ":2"); // meta and the names of the queues
}
