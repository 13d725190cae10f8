// Jobs: hints that there is something to claim. A store may give none; one that does gives them for every reason there
// is, after the fact.
#include <atomic>
#include <chrono>
#include <thread>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

constexpr auto patience = 10s; // much longer than a hint takes

class hints {
public:
    hints(job_store& of, std::vector<std::string> queues = {"default"})
        : watch_(of.watch(std::move(queues), [this] { ++count_; })) {
        if (watch_ == nullptr) throw case_skipped(not_offered);
    }
    int count() const noexcept { return count_; }
    void end() { watch_.reset(); }

    // A hint comes after `act` has begun.
    template <class Act>
    void follow(Act act, std::string_view what, std::source_location where = std::source_location::current()) const {
        const int before = count_;
        act();
        await(before, what, where);
    }
    // More than these come.
    void await(int before, std::string_view what, std::source_location where = std::source_location::current()) const {
        const auto give_up = std::chrono::steady_clock::now() + patience;
        while (count_ == before && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(200us);
        if (count_ == before) fail_check("no hint came after " + std::string(what), where);
    }

private:
    std::atomic<int> count_ = 0;
    std::unique_ptr<job_watch> watch_;
};

void enqueued_here(store_lab& in) {
    const job_user user(in);
    const hints told(user.jobs());
    told.follow([&] { user.add(); }, "a job was enqueued");
    told.follow([&] { user.add(3); }, "jobs were enqueued in bulk");
    check_equal(user.claim(10).size(), std::size_t{4}, "jobs that can be claimed after the hints");
    // Due by the store's clock, whatever another says.
    new_job past = user.make();
    past.when = due::at(in.now());
    told.follow([&] { user.add(past); }, "a job was enqueued for a time that has come");
    std::vector<new_job> several = {user.make(), user.make()};
    for (new_job& each : several) each.when = due::at(in.now());
    told.follow([&] { in.ok(user.jobs().enqueue(several), "enqueue"); }, "jobs were enqueued for a time that has come");
    check_equal(user.claim(10).size(), std::size_t{3}, "jobs that can be claimed after the hints");
    told.follow([&] { user.add(); }, "a job was enqueued when the queue was empty again");
}

void enqueued_there(store_lab& in) {
    const job_user here(in);
    const job_user there(in, *in.other().jobs());
    const hints told(here.jobs());
    for (int i = 0; i < 3; ++i) {
        told.follow([&] { there.add(); }, "a job was enqueued through another instance");
        in.pass(20ms);
    }
    check_equal(here.claim(10).size(), std::size_t{3}, "jobs that can be claimed after the hints");
}

void settled_so_that_it_can_run_again(store_lab& in) {
    const job_user user(in);
    const hints told(user.jobs());
    const auto again = [&](settlement s, std::string_view what) {
        told.follow([&] { user.add(); }, "a job was enqueued");
        const claimed_job mine = user.claim_one();
        s.held = &mine.lease;
        told.follow([&] { user.settle(s); }, what);
        user.settle(user.claim_one().lease, kind::succeed);
    };
    again({.held = nullptr, .how = kind::release, .when = {}, .error = {}, .output = {}}, "a job was released");
    again({.held = nullptr, .how = kind::retry, .when = {}, .error = {}, .output = {}}, "a retry that is due at once");
    again({.held = nullptr, .how = kind::snooze, .when = {}, .error = {}, .output = {}}, "a snooze that is over");
}

void parent_succeeded(store_lab& in) {
    const job_user user(in);
    const identifier parent = user.add();
    new_job child = user.make("family");
    child.parent = parent;
    user.add(child);
    const claimed_job mine = user.claim_one();
    const hints told(user.jobs(), {"family"});
    told.follow([&] { user.settle(mine.lease, kind::succeed); }, "the parent of a job in the queue has succeeded");
}

void requeued(store_lab& in) {
    const job_user user(in);
    const identifier dead = user.ended_as(kind::dead_letter);
    const hints told(user.jobs());
    told.follow([&] { user.requeue({dead}); }, "a job was requeued");
}

void resumed(store_lab& in) {
    const job_user user(in);
    in.ok(user.jobs().pause("default"), "pause");
    user.add();
    const hints told(user.jobs());
    told.follow([&] { in.ok(user.jobs().resume("default"), "resume"); }, "the queue was resumed");
}

void committed(store_lab& in) {
    const job_user user(in);
    const hints told(user.jobs());
    const auto unit = in.begin();
    new_job j = user.make();
    in.ok(user.jobs().enqueue({j}, unit.get()), "enqueue in a unit of work");
    told.follow([&] { in.ok(unit->commit(), "commit"); }, "the unit of work with the job was committed");
    check_equal(user.claim_one().id, j.id, "the job that can be claimed after the hint");
}

void one_of_several_queues(store_lab& in) {
    const job_user user(in);
    const hints some(user.jobs(), {"a", "b"});
    const hints other(user.jobs(), {"b", "c"});
    some.follow([&] { user.add(user.make("a")); }, "a job came into the first of two queues");
    const int before = other.count();
    some.follow([&] { user.add(user.make("b")); }, "a job came into the second of two queues");
    other.await(before, "a job came into a queue that two watch");
}

void ended(store_lab& in) {
    const job_user user(in);
    hints told(user.jobs());
    told.follow([&] { user.add(); }, "a job was enqueued");
    told.end();
    const int before = told.count();
    user.add(3);
    in.pass(20ms);
    check_equal(told.count(), before, "hints after the end of the watch");
}

void waits_for_the_hint(store_lab& in) {
    const job_user user(in);
    std::atomic<bool> begun = false;
    std::atomic<bool> done = false;
    auto watch = user.jobs().watch({"default"}, [&] {
        begun = true;
        std::this_thread::sleep_for(5ms);
        done = true;
    });
    if (watch == nullptr) throw case_skipped(not_offered);
    new_job job = user.make();
    std::thread adds([&] { static_cast<void>(in.await(user.jobs().enqueue({job}))); });
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (!begun && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    const bool came = begun;
    watch.reset();
    const bool waited = done;
    adds.join();
    check(came, "a hint comes after a job was enqueued");
    check(waited, "the end of a watch waits for a hint that is under way");
}

} // namespace

store_case_list job_watch_cases() {
    return {
        {"a watch is told of what is enqueued", &enqueued_here},
        {"a watch is told of what is enqueued through another instance", &enqueued_there},
        {"a watch is told of a job that was given back", &settled_so_that_it_can_run_again},
        {"a watch is told of a job whose parent has succeeded", &parent_succeeded},
        {"a watch is told of a job that was requeued", &requeued},
        {"a watch is told of a queue that was resumed", &resumed},
        {"a watch is told of a unit of work that was committed", &committed},
        {"a watch of several queues is told of each", &one_of_several_queues},
        {"a watch that has ended is told nothing", &ended},
        {"the end of a watch waits for a hint that is under way", &waits_for_the_hint},
    };
}

} // namespace holdfast::conformance
