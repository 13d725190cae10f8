// Two processes on one store: what both do at the same time, and what may have come of it.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "store_jobs.hpp"
#include "store_outbox.hpp"

namespace holdfast::conformance {

namespace {

// What one process did to one thing: the time of this machine, in which processes can be compared, before and after.
struct deed {
    std::string what;
    std::uint64_t token = 0;
    std::int64_t from = 0;
    std::int64_t until = 0;
};

std::int64_t ticks() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

std::string to_line(const std::vector<deed>& deeds) {
    std::ostringstream line;
    for (const deed& each : deeds)
        line << " " << each.what << " " << each.token << " " << each.from << " " << each.until;
    return line.str();
}

std::vector<deed> deeds_in(const std::string& line) {
    std::vector<deed> all;
    std::istringstream in(line);
    for (deed each; in >> each.what >> each.token >> each.from >> each.until;) all.push_back(each);
    return all;
}

// The rest of the line that the other process must begin with that word.
std::string answer_of(rival& other, const std::string& word) {
    const std::string line = other.hear();
    if (!line.starts_with(word)) throw check_failed("the second process: " + line);
    return line.substr(word.size());
}

// What each of the two does. The same code in both, so that they are equally quick.
class contender {
public:
    contender(holdfast::store& through, runtime& on) : store_(through), on_(on) {}

    std::vector<deed> act(const std::string& request) {
        std::istringstream words(request);
        std::string what;
        words >> what;
        if (what == "work") return work();
        if (what == "settle") return settle(words);
        if (what == "recover") return recover();
        if (what == "lock") return lock();
        if (what == "begin") return begin(words);
        if (what == "relay") return relay();
        throw check_failed("there is no request \"" + what + "\"");
    }

private:
    template <class T>
    T ok(task<result<T>> call, std::string_view what) {
        return plugin_lab::value_of(sync_wait(on_, std::move(call)), what);
    }

    // Claims and settles until nothing is left.
    std::vector<deed> work() {
        std::vector<deed> done;
        for (int idle = 0; idle < 3;) {
            const auto claimed =
                ok(store_.jobs()->claim({.queues = {"default"}, .limit = 3, .lease_for = long_lease, .worker = "w"}),
                   "claim");
            idle = claimed.empty() ? idle + 1 : 0;
            std::vector<settlement> batch;
            for (const auto& each : claimed)
                batch.push_back(
                    {.held = &each.lease, .how = settlement::kind::succeed, .when = {}, .error = {}, .output = {}});
            const std::int64_t from = ticks();
            const auto answers = ok(store_.jobs()->settle(batch), "settle");
            for (std::size_t i = 0; i < answers.size(); ++i)
                if (answers[i].answer == write_answer::done)
                    done.push_back({to_text(claimed[i].id), claimed[i].lease.token(), from, ticks()});
        }
        return done;
    }
    // Each of these by itself, whoever claimed it.
    std::vector<deed> settle(std::istream& words) {
        std::vector<deed> done;
        std::string id;
        for (std::uint64_t token = 0; words >> id >> token;) {
            const job_lease held(id, token);
            const settlement one[] = {
                {.held = &held, .how = settlement::kind::succeed, .when = {}, .error = {}, .output = {}}};
            const std::int64_t from = ticks();
            if (ok(store_.jobs()->settle(one), "settle").at(0).answer == write_answer::done)
                done.push_back({id, token, from, ticks()});
        }
        return done;
    }
    // One by one; says how many.
    std::vector<deed> recover() {
        std::uint64_t total = 0;
        for (int i = 0; i < 100; ++i)
            total += static_cast<std::uint64_t>(ok(store_.jobs()->recover_stale(1), "recover_stale").total());
        return {{"recovered", total, 0, 0}};
    }
    // While it is held: from the answer until the release is asked for.
    std::vector<deed> lock() {
        std::vector<deed> held;
        for (int i = 0; i < 400; ++i) {
            auto mine = ok(store_.locks()->try_acquire("r", 5min), "try_acquire");
            if (!mine) continue;
            const std::int64_t from = ticks();
            ok(store_.locks()->renew(*mine, 5min), "renew");
            held.push_back({"r", mine->token(), from, ticks()});
            ok(store_.locks()->release(*mine), "release");
        }
        return held;
    }
    // The keys for which this process was the one that was started.
    std::vector<deed> begin(std::istream& words) {
        std::string round;
        words >> round;
        std::vector<deed> started;
        for (int i = 0; i < 200; ++i) {
            const std::string key = round + "-" + std::to_string(i);
            const std::int64_t from = ticks();
            auto answer = ok(store_.idempotency()->begin({key, "f", 5min, default_idempotency_ttl}), "begin");
            auto* mine = std::get_if<idempotency_started>(&answer);
            if (mine == nullptr) continue;
            ok(store_.idempotency()->complete(mine->lease, {.type = "t", .body = std::to_string(mine->lease.token())}),
               "complete");
            started.push_back({key, mine->lease.token(), from, ticks()});
        }
        return started;
    }
    // Delivers until nothing is left.
    std::vector<deed> relay() {
        std::vector<deed> done;
        for (;;) {
            const auto leased = ok(store_.outbox()->lease_batch(3, 5min, "relay"), "lease_batch");
            if (leased.empty() && ok(store_.outbox()->unsent(), "unsent") == 0) return done;
            for (const auto& each : leased) {
                const message_lease* one[] = {&each.lease};
                const std::int64_t from = ticks();
                if (ok(store_.outbox()->delivered(one), "delivered").at(0) == write_answer::done)
                    done.push_back({to_text(each.message.id), each.lease.token(), from, ticks()});
            }
        }
    }

    holdfast::store& store_;
    runtime& on_;
};

struct both_did {
    std::vector<deed> here;
    std::vector<deed> there;
    std::vector<deed> all() const {
        auto together = here;
        together.insert(together.end(), there.begin(), there.end());
        return together;
    }
};

// Both at the same time: this process the first, the other one the second.
both_did contend(store_lab& in, rival& other, const std::string& here, const std::string& there) {
    other.say(there);
    answer_of(other, "begun");
    both_did did;
    did.here = contender(in.store(), in.on()).act(here);
    did.there = deeds_in(answer_of(other, "done"));
    return did;
}

// A machine that has much else to do may give one of them all the time it takes: then it is done again. That both get
// something is not for the store to promise.
constexpr int most_rounds = 10;
bool both_took_part(const both_did& did) {
    return !did.here.empty() && !did.there.empty();
}

void each_once(const std::vector<deed>& all, std::size_t expected, std::string_view what) {
    std::set<std::string> seen;
    for (const deed& each : all) check(seen.insert(each.what).second, std::string(what) + ": each by one process only");
    check_equal(seen.size(), expected, what);
}

void jobs_between_processes(store_lab& in) {
    const job_user user(in);
    rival& other = in.other_process();
    bool both = false;
    for (std::uint64_t round = 1; round <= most_rounds && !both; ++round) {
        user.add(300);
        const both_did did = contend(in, other, "work", "work");
        both = both_took_part(did);
        each_once(did.all(), 300, "jobs that were done");
        check_equal(user.count("default", job_state::succeeded), 300 * round, "jobs that succeeded");
    }
}

void completion_between_processes(store_lab& in) {
    constexpr int jobs = 100;
    const job_user user(in);
    rival& other = in.other_process();
    const int rounds = std::max(4, in.rounds() / 2);
    bool both = false; // won some of the same jobs
    for (int round = 0; round < rounds || (!both && round < most_rounds); ++round) {
        user.add(jobs);
        std::string settle = "settle";
        std::vector<identifier> ids;
        for (const auto& each : user.claim(jobs, 1ms)) {
            settle += " " + each.lease.subject() + " " + std::to_string(each.lease.token());
            ids.push_back(each.id);
        }
        check_equal(ids.size(), std::size_t{jobs}, "jobs claimed");
        in.pass(1ms);
        // In both orders: the one in the other process begins first.
        const bool here = round % 2 == 0;
        const both_did did = here ? contend(in, other, settle, "recover") : contend(in, other, "recover", settle);
        const auto& done = here ? did.here : did.there;
        const std::uint64_t recovered = (here ? did.there : did.here).at(0).token;
        check_equal(done.size() + recovered, std::uint64_t{jobs},
                    "jobs completed by one process or recovered by the other");
        both = both || (!done.empty() && recovered > 0);
        std::set<std::string> completed;
        for (const deed& each : done) completed.insert(each.what);
        for (const identifier& each : ids) {
            const bool mine = completed.contains(to_text(each));
            check_equal(user.state_of(each), mine ? job_state::succeeded : job_state::pending, "state");
        }
        for (const auto& each : user.claim(jobs, long_lease)) user.settle(each.lease, settlement::kind::succeed);
        in.ok(user.jobs().purge(job_state::succeeded, 0s, 10 * jobs), "purge");
    }
}

void locks_between_processes(store_lab& in) {
    in.locks();
    bool both = false;
    for (int round = 0; round < most_rounds && !both; ++round) {
        const both_did did = contend(in, in.other_process(), "lock", "lock");
        both = both_took_part(did);
        auto all = did.all();
        std::ranges::sort(all, {}, &deed::from);
        for (std::size_t i = 1; i < all.size(); ++i) {
            check(all[i].from > all[i - 1].until, "no two processes hold a lock at the same time");
            check(all[i].token > all[i - 1].token, "tokens grow across processes, in the order of the holders");
        }
    }
}

void keys_between_processes(store_lab& in) {
    idempotency_store& keys = in.idempotency();
    std::vector<deed> all;
    bool both = false;
    for (int round = 0; round < most_rounds && !both; ++round) {
        const std::string begin = "begin r" + std::to_string(round);
        const both_did did = contend(in, in.other_process(), begin, begin);
        both = both_took_part(did);
        all = did.all();
        each_once(all, 200, "keys that were started");
    }
    for (const deed& each : all) {
        const auto answer = in.ok(keys.begin({each.what, "f", 5min, default_idempotency_ttl}), "begin");
        check(std::holds_alternative<idempotency_completed>(answer), "what was completed is known to both");
        check_equal(std::get<idempotency_completed>(answer).result.body, std::to_string(each.token),
                    "the answer of the one that was started");
    }
}

void relays_between_processes(store_lab& in) {
    constexpr int keys = 7;
    const outbox_user user(in);
    rival& other = in.other_process();
    bool both = false;
    for (int round = 0; round < most_rounds && !both; ++round) {
        std::vector<outgoing_message> batch;
        for (int i = 0; i < 210; ++i) batch.push_back(user.make("k" + std::to_string(i % keys)));
        in.ok(user.outbox().append(batch), "append");
        const both_did did = contend(in, other, "relay", "relay");
        both = both_took_part(did);
        const auto all = did.all();
        each_once(all, batch.size(), "messages that were sent");
        std::map<std::string, const deed*> by_id;
        for (const deed& each : all) by_id[each.what] = &each;
        for (std::size_t i = keys; i < batch.size(); ++i) {
            const deed& before = *by_id.at(to_text(batch[i - keys].id));
            const deed& after = *by_id.at(to_text(batch[i].id));
            check(after.until > before.from, "no process overtakes the other in one key");
        }
    }
}

} // namespace

void serve_rival(holdfast::store& on_the_same_data, runtime& on) {
    std::cout << "ready" << std::endl;
    for (std::string request; std::getline(std::cin, request);) {
        std::cout << "begun" << std::endl;
        try {
            std::cout << "done" << to_line(contender(on_the_same_data, on).act(request)) << std::endl;
        } catch (const std::exception& e) {
            std::cout << "failed: " << e.what() << std::endl;
        }
    }
}

store_case_list job_process_cases() {
    return {{"two processes share the jobs between them, each once", &jobs_between_processes},
            {"completion in one process races recovery in another: one of them wins", &completion_between_processes}};
}
store_case_list lock_process_cases() {
    return {
        {"two processes never hold a lock together, and tokens grow from one to the other", &locks_between_processes}};
}
store_case_list idempotency_process_cases() {
    return {{"of two processes one is started", &keys_between_processes}};
}
store_case_list outbox_process_cases() {
    return {{"relays of two processes send each message once, in order per key", &relays_between_processes}};
}

} // namespace holdfast::conformance
