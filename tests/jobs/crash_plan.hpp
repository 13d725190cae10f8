// What is to happen in a schedule, as data: the faults of each process and what
// the client does. A seed makes it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_store.hpp>

#include "crash_rules.hpp"
#include "faulty_process.hpp"

namespace holdfast::test {

// A kind of call, and who makes it.
struct caller {
    bool client = false;
    store_call call = store_call::claim;

    friend auto operator<=>(const caller&, const caller&) = default;
};
inline constexpr std::array callers{
    caller{true, store_call::enqueue},   caller{true, store_call::cancel},    caller{true, store_call::requeue},
    caller{true, store_call::get},       caller{true, store_call::other},     caller{false, store_call::enqueue},
    caller{false, store_call::claim},    caller{false, store_call::started},  caller{false, store_call::heartbeat},
    caller{false, store_call::settle},   caller{false, store_call::progress}, caller{false, store_call::recover_stale},
    caller{false, store_call::next_due}, caller{false, store_call::handed},   caller{false, store_call::get},
};
// A worker dies before and after each of its first calls, of whatever kind.
inline constexpr int first_calls = 40;

struct client_step {
    enum class kind : unsigned char { enqueue, cancel, requeue, get, list, counts, pause, resume };
    kind what = kind::enqueue;
    duration at{};
    std::vector<new_job> jobs{};     // to enqueue
    std::vector<identifier> which{}; // to cancel, requeue or get
};

struct crash_plan {
    bool hands_over = false;
    std::vector<planned_fault> client{};
    std::array<std::vector<planned_fault>, 3> workers{}; // the first, the second, the third
    std::vector<client_step> script{};                   // in this order
};

namespace detail {

class crash_planner {
public:
    explicit crash_planner(std::uint64_t seed) : seed_(seed), random_(seed), ids_(seed) {}

    crash_plan make() {
        plan_.hands_over = one_in(2);
        if (seed_ % 4 == 0) add_plain_death();
        else add_fault_of_matrix();
        if (one_in(3))
            for (auto more = 1 + below(2); more > 0; --more) add_any_fault();
        if (one_in(8))
            for (std::size_t i : {0u, 1u}) plan_.workers[i].push_back({{}, 1 + below(30), deadly(one_in(2))});
        make_script();
        return std::move(plan_);
    }

private:
    int below(std::size_t limit) { return static_cast<int>(random_.next() % limit); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    duration within(std::size_t ms) { return std::chrono::milliseconds(below(ms)); }
    static fault deadly(bool before) { return before ? fault::dies_before : fault::dies_after; }

    void add_plain_death() {
        const auto turn = static_cast<int>(seed_ / 4 % (2 * first_calls));
        plan_.workers[0].push_back({{}, 1 + turn / 2, deadly(turn % 2 == 0)});
    }
    void add_fault_of_matrix() {
        const auto turn = seed_ - seed_ / 4; // counts those that come here
        const caller& who = callers[turn % callers.size()];
        add(who, one_in(3) ? 1 : 0, static_cast<fault>(turn / callers.size() % std::size(fault_names)));
    }
    void add_any_fault() {
        const caller& who = callers[static_cast<std::size_t>(below(callers.size()))];
        add(who, static_cast<std::size_t>(below(3)), static_cast<fault>(below(std::size(fault_names))));
    }
    void add(const caller& who, std::size_t worker, fault what) {
        const bool often = who.call == store_call::claim || who.call == store_call::next_due ||
                           who.call == store_call::settle || who.call == store_call::heartbeat;
        const planned_fault planned{who.call, 1 + below(often ? 8 : 2), what};
        if (who.client) plan_.client.push_back(planned);
        else plan_.workers[worker].push_back(planned);
        if (who.call == store_call::handed) plan_.hands_over = true;
        if (who.call == store_call::started) must_not_restart_ = true;
        if (who == caller{false, store_call::enqueue}) needed_ = "chain";
        if (who == caller{false, store_call::get}) needed_ = "probed";
    }

    new_job make_job() {
        constexpr std::string_view kinds[] = {"quick",   "slow",  "long",    "flaky", "hopeless",
                                              "heedful", "chain", "snoozer", "probed"};
        new_job one;
        one.id = ids_.next(std::chrono::system_clock::time_point(std::chrono::milliseconds(jobs_.size() + 1)));
        std::string_view kind = kinds[static_cast<std::size_t>(below(std::size(kinds)))];
        if (jobs_.empty() && !needed_.empty()) kind = needed_;
        one.may_restart = kind == "probed" || (!one_in(4) && !(jobs_.empty() && must_not_restart_));
        if (jobs_.size() > 1 && one_in(5)) { // several of one type have it
            kind = "slow";
            one.unique_key = "key";
        } else if (!jobs_.empty() && one_in(4)) {
            one.parent = any_job_id();
        }
        one.what = {std::string(kind), 1, "text/plain", to_text(one.id)};
        one.max_crashes = crash_rules::max_crashes;
        one.priority = below(3);
        if (one_in(4)) one.queue = "side";
        if (one_in(4)) one.when = due::after(within(5000));
        jobs_.push_back(one);
        return one;
    }
    identifier any_job_id() { return jobs_[static_cast<std::size_t>(below(jobs_.size()))].id; }

    void make_script() {
        using kind = client_step::kind;
        auto& script = plan_.script;
        script.push_back({.what = kind::enqueue, .jobs = {make_job(), make_job(), make_job()}});
        duration last{};
        for (int more = 2 + below(5); more > 0; --more) {
            last += within(4000);
            script.push_back({.what = kind::enqueue, .at = last, .jobs = {make_job()}});
        }
        for (int more = 1 + below(2); more > 0; --more)
            script.push_back({.what = kind::cancel, .at = within(20'000), .which = {any_job_id(), any_job_id()}});
        for (int more = 1 + below(2); more > 0; --more)
            script.push_back({.what = kind::requeue, .at = within(60'000), .which = {any_job_id(), any_job_id()}});
        for (int more = 1 + below(2); more > 0; --more)
            script.push_back({.what = kind::get, .at = within(20'000), .which = {any_job_id()}});
        const duration paused = within(10'000);
        script.push_back({.what = kind::pause, .at = paused});
        script.push_back({.what = kind::resume, .at = paused + within(10'000)});
        script.push_back({.what = kind::list, .at = within(20'000)});
        script.push_back({.what = kind::counts, .at = within(20'000)});
        std::ranges::stable_sort(script, {}, &client_step::at);
    }

    const std::uint64_t seed_;
    random_series random_;
    identifier_source ids_;
    crash_plan plan_;
    std::vector<new_job> jobs_;
    bool must_not_restart_ = false; // the first job
    std::string_view needed_;       // what the first job has to be
};

} // namespace detail

inline crash_plan make_crash_plan(std::uint64_t seed) {
    return detail::crash_planner(seed).make();
}

} // namespace holdfast::test
