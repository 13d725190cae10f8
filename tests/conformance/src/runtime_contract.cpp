// The bare contract of runtime.hpp: work and timers.
#include "contract.hpp"

#include <algorithm>

namespace holdfast::conformance {

namespace {

thread_local bool inside_post = false;

void never_inline(const runtime_factory& make) {
    const rig r(make);
    constexpr int pieces = 200;
    std::vector<probe> outer(pieces), inner(pieces);
    std::atomic<int> inlined = 0, refused = 0;
    tally all(2 * pieces);
    const auto post = [&](probe& p) {
        inside_post = true;
        const bool taken = r->post(p);
        inside_post = false;
        if (taken) return;
        ++refused;
        all.arrive();
    };
    for (int i = 0; i < pieces; ++i) {
        const auto at = static_cast<std::size_t>(i);
        outer[at].count = inner[at].count = &all;
        inner[at].then = [&] { inlined += inside_post ? 1 : 0; };
        outer[at].then = [&, at] {
            inlined += inside_post ? 1 : 0;
            post(inner[at]);
        };
        post(outer[at]);
    }
    all.wait(*r);
    check_equal(refused.load(), 0, "work that was refused");
    check_equal(inlined.load(), 0, "work that ran inside post()");
}

void all_run_once(const runtime_factory& make) {
    const rig r(make);
    constexpr std::size_t per_caller = 5000;
    const auto total = per_caller * static_cast<std::size_t>(r.callers());
    std::vector<probe> work(total);
    tally all(static_cast<int>(total));
    on_threads(r.callers(), [&](int caller) {
        for (std::size_t i = 0; i < per_caller; ++i) {
            auto& p = work[static_cast<std::size_t>(caller) * per_caller + i];
            p.count = &all;
            if (!r->post(p)) all.arrive();
        }
    });
    all.wait(*r);
    r->stop();
    for (const auto& each : work) check_equal(each.runs.load(), 1, "runs of a piece of work");
    for (const auto& each : work) check(each.why == wake::due, "posted work runs as asked");
}

void never_early(const runtime_factory& make) {
    const rig r(make);
    std::vector<probe> timers(300);
    tally all(static_cast<int>(timers.size()));
    random_series random(7);
    for (auto& each : timers) {
        each.on = &*r;
        each.count = &all;
        each.asked = r->now() + duration(static_cast<std::int64_t>(random.next() % 15'000'000));
        if (!r->arm(each, each.asked)) all.arrive();
    }
    all.wait(*r);
    for (const auto& each : timers) {
        check_equal(each.runs.load(), 1, "runs of a timer");
        check(each.at >= each.asked, "a timer never runs early");
        check(each.why == wake::due, "a timer runs as asked");
    }
}

void same_due_keeps_order(const runtime_factory& make) {
    const rig r(make);
    std::vector<probe> timers(500);
    tally all(static_cast<int>(timers.size()));
    std::atomic<int> order = 0;
    const time_point due = r->now() + 20ms;
    for (auto& each : timers) {
        each.order = &order;
        each.count = &all;
        if (!r->arm(each, due)) all.arrive();
    }
    all.wait(*r);
    for (std::size_t i = 0; i < timers.size(); ++i)
        check_equal(timers[i].place, static_cast<int>(i), "place of a timer among those due at the same time");
}

void cancel_is_exact(const runtime_factory& make) {
    const rig r(make);
    const auto per_caller = std::size_t{2000};
    std::vector<probe> timers(per_caller * static_cast<std::size_t>(r.callers()));
    tally all(static_cast<int>(timers.size()));
    std::vector<char> cancelled(timers.size());
    on_threads(r.callers(), [&](int caller) {
        const std::size_t first = per_caller * static_cast<std::size_t>(caller);
        for (std::size_t i = first; i < first + per_caller; ++i) {
            timers[i].count = &all;
            if (!r->arm(timers[i], r->now() + duration(static_cast<std::int64_t>(i % 100) * 10'000))) all.arrive();
        }
        for (std::size_t i = first; i < first + per_caller; ++i) {
            cancelled[i] = r->cancel(timers[i]) ? 1 : 0;
            if (cancelled[i]) all.arrive();
        }
    });
    all.wait(*r);
    for (std::size_t i = 0; i < timers.size(); ++i)
        check_equal(timers[i].runs.load(), cancelled[i] ? 0 : 1, "runs of a timer that was cancelled, or not");
    for (auto& each : timers) check(!r->cancel(each), "cancelling what has run or was cancelled does nothing");
}

void far_and_past(const runtime_factory& make) {
    const rig r(make);
    std::vector<probe> past(3), far(3);
    tally all(3);
    for (auto& each : past) each.count = &all;
    const time_point far_due[] = {never, r->now() + std::chrono::hours{24 * 365 * 100}, never - 1ns};
    for (std::size_t i = 0; i < far.size(); ++i) check(r->arm(far[i], far_due[i]), "a timer far away is taken");
    const time_point past_due[] = {time_point::min(), time_point{}, r->now()};
    for (std::size_t i = 0; i < past.size(); ++i)
        if (!r->arm(past[i], past_due[i])) all.arrive();
    all.wait(*r);
    int cancelled = 0;
    for (auto& each : far) cancelled += r->cancel(each) ? 1 : 0;
    for (const auto& each : past) check_equal(each.runs.load(), 1, "runs of a timer of the past");
    check_equal(cancelled, 3, "timers far away that were still armed");
    for (const auto& each : far) check_equal(each.runs.load(), 0, "runs of a timer far away");
}

void many_timers(const runtime_factory& make) {
    const rig r(make);
    constexpr int count = 100'000;
    std::vector<probe> timers(count);
    tally all(count);
    const time_point start = r->now();
    for (int i = 0; i < count; ++i) {
        auto& each = timers[static_cast<std::size_t>(i)];
        each.on = &*r;
        each.count = &all;
        each.asked = start + 1ms * (i * 7919 % 100);
        if (!r->arm(each, each.asked)) all.arrive();
    }
    all.wait(*r);
    for (const auto& each : timers) {
        check_equal(each.runs.load(), 1, "runs of a timer");
        check(each.at >= each.asked, "a timer never runs early");
    }
}

task<void> note_end(runtime& on, std::stop_token stop, std::atomic<int>& cancelled) {
    auto sleeping = sleep_for(on, 1h, std::move(stop));
    if (co_await sleeping == sleep_end::cancelled) ++cancelled;
}

void many_sleepers_cancelled(const runtime_factory& make) {
    const rig r(make);
    std::stop_source source;
    std::atomic<int> cancelled = 0;
    std::vector<task<void>> sleepers;
    for (int i = 0; i < 10'000; ++i) sleepers.push_back(note_end(*r, source.get_token(), cancelled));
    probe canceller;
    canceller.then = [&] { source.request_stop(); };
    const bool armed = r->arm(canceller, r->now() + 2ms);
    if (!armed) source.request_stop();
    sync_wait(*r, when_all(std::move(sleepers)));
    r->stop();
    check_equal(cancelled.load(), 10'000, "sleepers that were cancelled");
}

void chains(const runtime_factory& make) {
    const rig r(make);
    constexpr int links = 10'000;
    std::atomic<int> left = links;
    tally one(1);
    probe link, last;
    last.count = &one;
    link.then = [&] {
        if (--left > 0 ? r->post(link) : r->arm(last, r->now())) return;
        one.arrive();
    };
    if (!r->post(link)) one.arrive();
    one.wait(*r);
    check_equal(left.load(), 0, "links left of a chain of work that posts itself");
    check_equal(last.runs.load(), 1, "runs of the timer at its end");
}

void steady_clock(const runtime_factory& make) {
    const rig r(make);
    time_point before = r->now();
    for (int i = 0; i < 10'000; ++i) {
        const time_point now = r->now();
        check(now >= before, "the clock never goes back");
        before = now;
    }
    const time_point started = r->now();
    check(block_for(*r, 2ms) == sleep_end::due, "a sleep ends when it is due");
    check(r->now() - started >= 2ms, "the clock has moved on with the sleep");
    check(!r->name().empty(), "the runtime has a name");
}

} // namespace

std::vector<contract_case> contract_cases() {
    std::vector<contract_case> all{
        {1, "posted work never runs inside post()", never_inline},
        {2, "every piece of posted work runs once", all_run_once},
        {3, "a timer never runs early", never_early},
        {4, "timers due at the same time run in the order in which they were armed", same_due_keeps_order},
        {5, "a cancelled timer does not run, one that cannot be cancelled runs once", cancel_is_exact},
        {6, "timers of the past run soon, and far ones can be armed and cancelled", far_and_past},
        {7, "a hundred thousand timers all expire, none early", many_timers},
        {8, "ten thousand sleepers all end when they are cancelled", many_sleepers_cancelled},
        {9, "work may post itself again, and arm timers", chains},
        {10, "the clock is steady and moves with sleeps", steady_clock},
    };
    for (auto& each : pool_and_stop_cases()) all.push_back(std::move(each));
    for (auto& each : reading_cases()) all.push_back(std::move(each));
    return all;
}

} // namespace holdfast::conformance
