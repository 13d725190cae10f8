// The bare contract of runtime.hpp: waiting, the blocking pool, stopping.
#include "contract.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace holdfast::conformance {

namespace {

void wait_returns(const runtime_factory& make) {
    const rig r(make);
    parker ready;
    ready.unpark();
    r->wait(ready);
    on_threads(r.callers(), [&](int) {
        for (int i = 0; i < 200; ++i) {
            parker p;
            probe w;
            w.then = [&] { p.unpark(); };
            tally gone(1);
            w.count = &gone;
            if (!(i % 2 == 0 ? r->post(w) : r->arm(w, r->now()))) return;
            r->wait(p);
            gone.wait(*r);
        }
    });
    const int value = sync_wait(*r, run_blocking(*r, [] { return 5; }));
    check_equal(value, 5, "what blocking work gave");
}

// Of the thread that runs this: at first, once more, and after it has waited for something.
task<std::array<bool, 3>> borrow_thrice(runtime& on) {
    const bool first = on.borrow_thread();
    const bool again = on.borrow_thread();
    co_await resume_on(on);
    const bool later = on.borrow_thread();
    co_return std::array{first, again, later};
}

void waiting_thread_is_lent_once(const runtime_factory& make) {
    const rig r(make);
    check(!r->borrow_thread(), "nobody has lent this thread");
    on_threads(r.callers(), [&](int) {
        for (int i = 0; i < 20; ++i) {
            const auto [first, again, later] = sync_wait(*r, borrow_thrice(*r));
            check(first, "a thread that waits is lent");
            check(!again, "but once");
            check(!later, "and not when it only runs, or waits for, what has left it");
        }
    });
    {
        const lent_thread listening(*r, thread_loan::listener);
        sync_wait(*r, borrow_thrice(*r));
        check(r->lend_thread(thread_loan::none) == thread_loan::listener, "a wait puts back the loan that it found");
    }
    check(!r->borrow_thread(), "the loan has ended");
}

void needs_threads(const rig& r) {
    if (r.alone()) throw case_skipped("this runtime runs everything on the thread that waits for it");
}

void blocking_is_apart(const runtime_factory& make) {
    const rig r(make);
    needs_threads(r);
    constexpr int pieces = 2; // a pool of one thread is a pool too, so the second may have to wait for the first
    std::vector<probe> blocking(pieces), posted(pieces), timers(pieces);
    std::vector<parker> gates(std::size_t{2} * pieces);
    tally all(3 * pieces);
    int refused = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
        // Blocks until posted work and a timer have run, so neither may stand behind it.
        blocking[i].then = [&, i] {
            gates[2 * i].park();
            gates[2 * i + 1].park();
        };
        posted[i].then = [&, i] { gates[2 * i].unpark(); };
        timers[i].then = [&, i] { gates[2 * i + 1].unpark(); };
        for (probe* each : {&blocking[i], &posted[i], &timers[i]}) each->count = &all;
        if (!r->post_blocking(blocking[i])) ++refused, all.arrive();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    for (std::size_t i = 0; i < pieces; ++i) {
        if (!r->post(posted[i])) ++refused, gates[2 * i].unpark(), all.arrive();
        if (!r->arm(timers[i], r->now() + 1ms)) ++refused, gates[2 * i + 1].unpark(), all.arrive();
    }
    all.wait(*r);
    check_equal(refused, 0, "work that was refused");
    std::set<std::thread::id> runtime_threads;
    for (const auto& each : posted) runtime_threads.insert(each.thread);
    for (const auto& each : timers) runtime_threads.insert(each.thread);
    for (const auto& each : blocking)
        check(!runtime_threads.contains(each.thread), "blocking work runs on no thread that ran posted work or timers");
}

void pool_is_bounded(const runtime_factory& make) {
    const rig r(make);
    needs_threads(r);
    constexpr std::size_t most = 100'000;
    const auto pieces = std::make_unique<probe[]>(most);
    std::atomic<bool> open = false;
    std::size_t taken = 0;
    while (taken < most) {
        pieces[taken].then = [&] { open.wait(false); };
        if (!r->post_blocking(pieces[taken])) break;
        ++taken;
    }
    open = true;
    open.notify_all();
    r->stop();
    for (std::size_t i = 0; i < taken; ++i)
        check_equal(pieces[i].runs.load(), 1, "runs of blocking work that was taken");
    if (taken == most)
        throw case_skipped("the pool took " + std::to_string(most) +
                           " pieces of blocking work; its bound, if any, is higher");
    check_equal(pieces[taken].runs.load(), 0, "runs of blocking work that was refused");
    check(taken > 0, "the pool takes something");
}

void pool_recovers(const runtime_factory& make) {
    const rig r(make);
    int sum = 0;
    for (int i = 0; i < 200; ++i) sum += sync_wait(*r, run_blocking(*r, [i] { return i; }));
    check_equal(sum, 199 * 200 / 2, "sum of what blocking work gave");
    const auto thrown = thrown_by([&] { sync_wait(*r, run_blocking(*r, [] { throw std::out_of_range("blocked"); })); });
    check_exception<std::out_of_range>(thrown, "blocked", "what blocking work threw");
}

void stop_completes_all(const runtime_factory& make) {
    std::vector<probe> posted(1000), timers(10'000), blocking(20);
    std::vector<char> taken(blocking.size());
    {
        const rig r(make);
        bool all_taken = true;
        for (auto& each : timers) all_taken = r->arm(each, r->now() + 1h) && all_taken;
        for (auto& each : posted) all_taken = r->post(each) && all_taken;
        for (std::size_t i = 0; i < blocking.size(); ++i) taken[i] = r->post_blocking(blocking[i]) ? 1 : 0;
        check(!r->stopped(), "a runtime is not stopped before stop()");
        r->stop();
        check(r->stopped(), "a runtime is stopped after stop()");
        check(all_taken, "work and timers were taken");
        const auto check_runs = [&](std::string_view when) {
            for (const auto& each : posted)
                check_equal(each.runs.load(), 1, "runs of posted work " + std::string(when));
            for (const auto& each : timers) check_equal(each.runs.load(), 1, "runs of a timer " + std::string(when));
            for (std::size_t i = 0; i < blocking.size(); ++i)
                check_equal(blocking[i].runs.load(), static_cast<int>(taken[i]),
                            "runs of blocking work " + std::string(when));
        };
        check_runs("when stop() has returned");
        for (const auto& each : timers) check(each.why == wake::stopped, "a timer is told that the runtime stops");
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
        check_runs("a little later");
        r->stop();
        check_runs("after a second stop()");
    }
}

void stopped_takes_nothing(const runtime_factory& make) {
    const rig r(make);
    r->stop();
    probe p;
    check(!r->post(p), "a stopped runtime takes no work");
    check(!r->post_blocking(p), "a stopped runtime takes no blocking work");
    check(!r->arm(p, r->now()), "a stopped runtime takes no timer");
    check(!r->cancel(p), "a timer that was not taken cannot be cancelled");
    check_equal(p.runs.load(), 0, "runs of what was refused");
    check(block_for(*r, 1h) == sleep_end::stopped, "a sleep on a stopped runtime ends at once");
    const auto thrown = thrown_by([&] { sync_wait(*r, run_blocking(*r, [] { return 1; })); });
    const auto* error = detail::exception_as<failed>(thrown);
    check(error != nullptr && error->code() == errc::stopped,
          "blocking work on a stopped runtime is refused as stopped");
}

// Work that was taken runs, whatever else happens at the same time; stop() must not lose any.
void stop_races_posters(const runtime_factory& make) {
    for (int round = 0; round < 20; ++round) {
        const rig r(make);
        needs_threads(r);
        constexpr std::size_t per_caller = 20'000;
        std::vector<probe> work(3 * per_caller);
        std::vector<char> taken(work.size());
        {
            std::vector<std::jthread> callers;
            for (std::size_t caller = 0; caller < 3; ++caller)
                callers.emplace_back([&, caller] {
                    for (std::size_t i = caller * per_caller; i < (caller + 1) * per_caller; ++i) {
                        const bool ok = i % 2 == 0 ? r->post(work[i]) : r->arm(work[i], r->now() + 1ms * (i % 50));
                        if (!ok) return;
                        taken[i] = 1;
                    }
                });
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            r->stop();
        }
        for (std::size_t i = 0; i < work.size(); ++i)
            check_equal(work[i].runs.load(), static_cast<int>(taken[i]),
                        "runs of work that was taken, or not, while stopping");
    }
}

} // namespace

std::vector<contract_case> pool_and_stop_cases() {
    return {
        {11, "wait() returns when the parker is unparked, on several threads too", wait_returns},
        {12, "blocking work holds up neither posted work nor timers", blocking_is_apart},
        {13, "the blocking pool refuses when it is full instead of growing without bound", pool_is_bounded},
        {14, "blocking work gives its value or its exception, again and again", pool_recovers},
        {15, "stop() runs what was posted and every timer, and nothing runs afterwards", stop_completes_all},
        {16, "a stopped runtime takes nothing", stopped_takes_nothing},
        {17, "stop() loses nothing that is posted at the same time", stop_races_posters},
        {18, "a thread that waits for a task is lent to it, once", waiting_thread_is_lent_once},
    };
}

} // namespace holdfast::conformance
