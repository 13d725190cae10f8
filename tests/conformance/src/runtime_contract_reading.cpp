// The bare contract of runtime.hpp: work that waits for something to read.
#include "contract.hpp"

#include <array>
#include <optional>

#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::conformance {

namespace {

// Two ends of a line; what is said at one can be read at the other.
class line {
public:
    line() {
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0)
            throw check_failed("there is no pair of sockets to be had");
    }
    ~line() {
        hang_up();
        ::close(ends_[0]);
    }
    line(const line&) = delete;
    line& operator=(const line&) = delete;

    int end() const noexcept { return ends_[0]; }
    void say() const noexcept { static_cast<void>(!::write(ends_[1], "x", 1)); }
    void hear() const noexcept {
        char c = 0;
        static_cast<void>(!::read(ends_[0], &c, 1));
    }
    void hang_up() noexcept {
        if (ends_[1] >= 0) ::close(ends_[1]);
        ends_[1] = -1;
    }

private:
    std::array<int, 2> ends_{-1, -1};
};

std::unique_ptr<readable_watch> watch(const rig& r, const line& what) {
    auto made = r->watch_readable(what.end());
    if (made == nullptr) throw case_skipped("this runtime watches no descriptors: who listens needs a thread");
    return made;
}

void pause() {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
}

// Has p wait, and something happen that lets it run.
template <class Event>
void check_runs(const rig& r, readable_watch& on, probe& p, Event event, std::string_view after) {
    const int before = p.runs;
    tally one(1);
    p.count = &one;
    const bool taken = on.wait(p);
    check(taken, "a wait is taken");
    pause();
    event(p.runs - before);
    one.wait(*r);
    check_equal(p.runs - before, 1, "runs " + std::string(after));
    check(p.why == wake::due, "it runs because there is something to read");
    check(p.thread != std::this_thread::get_id(), "it runs on a thread of the runtime");
}

void reading_wakes(const runtime_factory& make) {
    const rig r(make);
    line l;
    const auto on = watch(r, l);
    probe p;
    int early = 0;
    const auto then = [&](auto what) {
        return [&early, what](int runs) {
            early = runs;
            what();
        };
    };
    check_runs(r, *on, p, then([&] { l.say(); }), "when there is something to read");
    check_equal(early, 0, "runs while there was nothing to read");
    check_runs(r, *on, p, [](int) {}, "when it has not been read yet");
    l.hear();
    check_runs(r, *on, p, then([&] { l.say(); }), "when there is something once more");
    check_equal(early, 0, "runs while all was read");
    l.hear();
    check_runs(r, *on, p, then([&] { l.hang_up(); }), "at the end");
    check_equal(early, 0, "runs before the end");
    const int all = p.runs;
    pause();
    check_equal(p.runs.load(), all, "runs of what nobody had wait again");
    check(!on->cancel(), "nothing waits that could be cancelled");
}

// Each hears its line to the end, and waits again from within.
void many_are_read(const runtime_factory& make) {
    const rig r(make);
    constexpr int words = 300;
    constexpr std::size_t lines = 8;
    struct listener {
        line of;
        std::unique_ptr<readable_watch> on;
        probe p;
        std::atomic<int> heard = 0;
        std::atomic<bool> refused = false;
    };
    std::vector<listener> all(lines);
    tally done(lines);
    for (listener& each : all) {
        each.on = watch(r, each.of);
        each.p.then = [&] {
            each.of.hear();
            if (++each.heard == words) return done.arrive();
            if (each.on->wait(each.p)) return;
            each.refused = true;
            done.arrive();
        };
    }
    bool taken = true;
    for (listener& each : all)
        if (!each.on->wait(each.p)) taken = false, done.arrive();
    on_threads(2, [&](int which) {
        for (int i = 0; i < words; ++i)
            for (std::size_t k = static_cast<std::size_t>(which); k < lines; k += 2) all[k].of.say();
    });
    done.wait(*r);
    r->stop();
    check(taken, "all waits are taken");
    for (const listener& each : all) {
        check(!each.refused, "a wait from within is taken");
        check_equal(each.heard.load(), words, "what was heard");
        check_equal(each.p.runs.load(), words, "runs");
    }
}

void cancel_is_exact(const runtime_factory& make) {
    const rig r(make);
    const line l;
    const auto on = watch(r, l);
    for (int i = 0; i < 500; ++i) {
        probe p;
        tally one(1);
        p.count = &one;
        check(on->wait(p), "a wait is taken");
        bool cancelled = false;
        {
            const std::jthread other([&] { l.say(); });
            cancelled = on->cancel();
        }
        if (cancelled) one.arrive();
        one.wait(*r);
        l.hear();
        check_equal(p.runs.load(), cancelled ? 0 : 1,
                    cancelled ? "runs of what was cancelled" : "runs of what was not");
    }
    std::optional<line> short_lived(std::in_place);
    auto gone = watch(r, *short_lived);
    probe p;
    check(gone->wait(p), "a wait is taken");
    short_lived->say();
    const bool mine = gone->cancel();
    if (!mine)
        while (p.runs == 0) std::this_thread::yield();
    gone.reset();
    short_lived.reset(); // its number may be another's now
    const line next;
    next.say();
    pause();
    check_equal(p.runs.load(), mine ? 0 : 1, "runs after the watch has gone");
}

void stop_gives_back(const runtime_factory& make) {
    for (int round = 0; round < 20; ++round) {
        const rig r(make);
        constexpr std::size_t lines = 4;
        const std::vector<line> all(lines);
        std::vector<std::unique_ptr<readable_watch>> on;
        std::vector<probe> waits(lines);
        for (const line& each : all) on.push_back(watch(r, each));
        std::vector<char> taken(lines);
        for (std::size_t i = 0; i < lines; ++i) taken[i] = on[i]->wait(waits[i]) ? 1 : 0;
        {
            const std::jthread other([&] {
                for (std::size_t i = 1; i < lines; ++i) all[i].say();
            });
            r->stop();
        }
        std::vector<int> ends(lines);
        for (std::size_t i = 0; i < lines; ++i) ends[i] = waits[i].runs + (on[i]->cancel() ? 1 : 0);
        for (std::size_t i = 0; i < lines; ++i) {
            check_equal(static_cast<int>(taken[i]), 1, "waits that were taken");
            check_equal(ends[i], 1, "what waits when the runtime stops runs or is given back");
        }
        check_equal(waits[0].runs.load(), 0, "runs of what had nothing to read");
        check(!on[0]->wait(waits[0]), "a stopped runtime waits for nothing");
    }
}

} // namespace

std::vector<contract_case> reading_cases() {
    return {
        {19, "work that waits for something to read runs when there is, once", reading_wakes},
        {20, "many that wait for something to read hear all of it", many_are_read},
        {21, "a wait for something to read is cancelled or runs, never both", cancel_is_exact},
        {22, "what waits for something to read when the runtime stops is given back", stop_gives_back},
    };
}

} // namespace holdfast::conformance
