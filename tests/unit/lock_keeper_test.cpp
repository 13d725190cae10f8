#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/fence.hpp>
#include <holdfast/lock_keeper.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task_scope.hpp>

#include "catch.hpp"
#include "memory_store.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// A lock store that can be made to fail and to dawdle, in front of a real one.
class stubborn_locks final : public lock_store {
public:
    stubborn_locks(lock_store& inner, runtime& on) : inner_(inner), on_(on) {}
    task<result<std::optional<lock_lease>>> try_acquire(std::string resource, duration ttl) override {
        return late(inner_.try_acquire(std::move(resource), ttl));
    }
    task<result<void>> renew(const lock_lease& held, duration ttl) override {
        ++renewals;
        return late(down ? refuse() : inner_.renew(held, ttl));
    }
    task<result<void>> release(const lock_lease& held) override {
        ++releases;
        return inner_.release(held);
    }

    bool down = false;
    duration answers_after{}; // it does at once what it was asked
    int renewals = 0;
    int releases = 0;

private:
    static task<result<void>> refuse() { co_return fail(errc::unavailable, "the server is away"); }
    template <class T>
    task<result<T>> late(task<result<T>> asked) {
        const duration how_late = answers_after;
        auto answer = co_await std::move(asked);
        if (how_late > duration::zero()) co_await sleep_for(on_, how_late);
        co_return std::move(answer);
    }
    lock_store& inner_;
    runtime& on_;
};

class warnings final : public logger {
public:
    bool enabled(log_level) const noexcept override { return true; }
    void write(log_level level, std::string_view message) noexcept override {
        kept.push_back(std::string(to_text(level)) + ": " + std::string(message));
    }
    std::vector<std::string> kept;
};

struct lock_bench {
    held_lock hold(lock_options how = {}) {
        auto got = sync_wait(on, keeper.try_acquire("report", how));
        REQUIRE(got.has_value());
        REQUIRE(got->has_value());
        return std::move(**got);
    }
    bool taken() {
        auto got = sync_wait(on, kept->locks()->try_acquire("report", 1s));
        REQUIRE(got.has_value());
        return !got->has_value();
    }
    void close() {
        if (std::exchange(open, false)) sync_wait(on, keeper.close());
    }
    ~lock_bench() { close(); }

    simulated_runtime on;
    std::unique_ptr<store> kept = memory::make_store({}, &on);
    stubborn_locks locks{*kept->locks(), on};
    warnings log;
    lock_keeper keeper{locks, on, &log};
    bool open = true;
};

using acquired = result<std::optional<held_lock>>;

task<void> acquire_into(lock_keeper& keeper, std::optional<acquired>& into) {
    auto acquiring = keeper.try_acquire("report", {.ttl = 30s});
    into = co_await std::move(acquiring);
}
task<void> close_and_note(lock_keeper& keeper, bool& closed) {
    auto closing = keeper.close();
    co_await std::move(closing);
    closed = true;
}

} // namespace

TEST_CASE("a held lock is kept for longer than its time to live") {
    lock_bench b;
    {
        const held_lock lock = b.hold({.ttl = 3s});
        b.on.advance(1h);
        CHECK(b.taken());
        CHECK_FALSE(lock.lost().stop_requested());
        CHECK(b.locks.renewals >= 3599);
    }
    b.on.run_ready();
    CHECK_FALSE(b.taken());
}

TEST_CASE("a held lock that goes out of scope is given back at once") {
    lock_bench b;
    {
        const held_lock lock = b.hold();
        CHECK(b.taken());
    }
    b.on.run_ready();
    CHECK(b.locks.releases == 1);
    CHECK_FALSE(b.taken());
}

TEST_CASE("releasing a lock by hand gives it back once") {
    lock_bench b;
    held_lock lock = b.hold();
    CHECK(sync_wait(b.on, lock.release()).has_value());
    CHECK(b.locks.releases == 1);
    CHECK_FALSE(b.taken());
    b.on.advance(1h);
    CHECK(b.locks.releases == 1);
}

TEST_CASE("somebody else's lock is not waited for") {
    lock_bench b;
    const held_lock lock = b.hold();
    const auto other = sync_wait(b.on, b.keeper.try_acquire("report"));
    REQUIRE(other.has_value());
    CHECK_FALSE(other->has_value());
}

TEST_CASE("a lock that cannot be renewed is told to be lost when its time is over, not before") {
    lock_bench b;
    const held_lock lock = b.hold({.ttl = 30s});
    b.locks.down = true;
    b.on.advance(29s);
    CHECK_FALSE(lock.lost().stop_requested());
    b.on.advance(2s);
    CHECK(lock.lost().stop_requested());
    CHECK_FALSE(b.taken());
    CHECK(b.locks.releases == 0);
}

TEST_CASE("a lock whose renewal hangs is told to be lost when its time is over") {
    lock_bench b;
    const held_lock lock = b.hold({.ttl = 30s});
    b.locks.down = true;
    b.locks.answers_after = 10min; // asked after 10 s
    b.on.advance(29s);
    CHECK_FALSE(lock.lost().stop_requested());
    b.on.advance(1s);
    CHECK(lock.lost().stop_requested());
    CHECK_FALSE(b.taken());
    CHECK(b.log.kept ==
          std::vector<std::string>{"warning: the lock \"report\" was lost: its renewal was not answered in time"});
    b.on.advance(1h);
    CHECK(b.log.kept.size() == 1);
    CHECK(b.locks.renewals == 1);
    CHECK(b.locks.releases == 0);
}

TEST_CASE("a lock stays lost when its renewal is answered too late") {
    lock_bench b;
    const held_lock lock = b.hold({.ttl = 30s});
    b.locks.answers_after = 25s; // asked after 10 s, until when the lock lasts 20 s more
    b.on.advance(30s);
    CHECK(lock.lost().stop_requested());
    b.on.advance(6s); // now it says that it was renewed
    CHECK(lock.lost().stop_requested());
    b.on.advance(1h);
    CHECK(b.locks.renewals == 1);
    CHECK_FALSE(b.taken());
}

TEST_CASE("a lock lasts from when its renewal was asked for, not from when that was answered") {
    lock_bench b;
    const held_lock lock = b.hold({.ttl = 30s});
    b.locks.answers_after = 15s; // asked after 10 s, so good until 40 s; asked again after 35 s
    b.on.advance(39s);
    CHECK_FALSE(lock.lost().stop_requested());
    b.on.advance(1s);
    CHECK(lock.lost().stop_requested());
}

TEST_CASE("a lock that was granted too late is lost from the beginning") {
    lock_bench b;
    b.locks.answers_after = 31s;
    const held_lock lock = b.hold({.ttl = 30s});
    CHECK(lock.lost().stop_requested());
    b.on.advance(1h);
    CHECK(b.locks.renewals == 0);
}

TEST_CASE("a lock that is let go while its renewal hangs is given back, and is not lost") {
    lock_bench b;
    std::stop_token lost;
    {
        const held_lock lock = b.hold({.ttl = 30s});
        lost = lock.lost();
        b.locks.answers_after = 10min;
        b.on.advance(15s);
    }
    b.on.advance(1h);
    CHECK_FALSE(lost.stop_requested());
    CHECK(b.locks.releases == 1);
    CHECK(b.log.kept.empty());
}

TEST_CASE("the log tells why a lock could not be renewed") {
    lock_bench b;
    const held_lock lock = b.hold({.ttl = 30s});
    b.locks.down = true;
    b.on.advance(1min);
    CHECK(b.log.kept == std::vector<std::string>{"warning: the lock \"report\" was lost: the server is away"});
}

TEST_CASE("a keeper that is closed takes no lock") {
    lock_bench b;
    b.close();
    const auto got = sync_wait(b.on, b.keeper.try_acquire("report"));
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().code == errc::stopped);
    CHECK(got.error().message == "the lock \"report\" was not taken: its keeper is closed");
    CHECK_FALSE(b.taken());
}

TEST_CASE("a lock that is granted while its keeper closes is given back, and closing waits for that") {
    lock_bench b;
    b.locks.answers_after = 5s;
    std::optional<acquired> got;
    bool closed = false;
    task_scope callers;
    callers.spawn(acquire_into(b.keeper, got));
    b.open = false;
    callers.spawn(close_and_note(b.keeper, closed));
    b.on.advance(4s);
    CHECK_FALSE(closed);
    CHECK_FALSE(got.has_value());
    b.on.advance(1s);
    CHECK(closed);
    REQUIRE(got.has_value());
    REQUIRE_FALSE(got->has_value());
    CHECK(got->error().code == errc::stopped);
    CHECK(b.locks.releases == 1);
    CHECK_FALSE(b.taken());
    sync_wait(b.on, callers.join());
}

TEST_CASE("a keeper that closes waits for a lock that is held") {
    lock_bench b;
    bool closed = false;
    task_scope callers;
    {
        const held_lock lock = b.hold({.ttl = 30s});
        b.open = false;
        callers.spawn(close_and_note(b.keeper, closed));
        b.on.advance(1h);
        CHECK_FALSE(closed);
        CHECK(b.taken());
    }
    b.on.run_ready();
    CHECK(closed);
    CHECK_FALSE(b.taken());
    sync_wait(b.on, callers.join());
}

TEST_CASE("a lock outlives a short outage of its store") {
    lock_bench b;
    const held_lock lock = b.hold({.ttl = 30s});
    b.locks.down = true;
    b.on.advance(25s);
    b.locks.down = false;
    b.on.advance(1h);
    CHECK_FALSE(lock.lost().stop_requested());
    CHECK(b.taken());
}

TEST_CASE("a lock that another has taken over is lost at the next renewal, with a larger token there") {
    lock_bench b;
    held_lock lock = b.hold({.ttl = 30s});
    const lock_lease stolen("report", lock.token());
    REQUIRE(sync_wait(b.on, b.kept->locks()->release(stolen)).has_value());
    const auto thief = sync_wait(b.on, b.kept->locks()->try_acquire("report", 1h));
    REQUIRE(thief.has_value());
    REQUIRE(thief->has_value());
    CHECK((*thief)->token() > lock.token());
    b.on.advance(11s);
    CHECK(lock.lost().stop_requested());
    CHECK(sync_wait(b.on, lock.release()).has_value());
    CHECK(b.taken()); // the thief's is not given back
}

TEST_CASE("a lock that would be renewed too late is refused") {
    lock_bench b;
    const auto got = sync_wait(b.on, b.keeper.try_acquire("report", {.ttl = 1s, .renew_every = 1s}));
    REQUIRE_FALSE(got.has_value());
    CHECK(got.error().message == "a lock of 1s cannot be kept by renewing it every 1s");
}

TEST_CASE("a fence lets nobody by who is older than the one before") {
    fence f;
    CHECK(f.admit(3));
    CHECK(f.admit(3));
    CHECK(f.admit(5));
    CHECK_FALSE(f.admit(4));
    CHECK(f.highest() == 5);
}

TEST_CASE("a fence that many threads come to ends at the largest token") {
    fence f;
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([&f, t] {
            for (std::uint64_t n = 0; n < 10'000; ++n) f.admit(n * 4 + t);
        });
    for (auto& each : threads) each.join();
    CHECK(f.highest() == 39'999);
}

TEST_CASE("a guarded resource refuses a stale holder and does not run its code") {
    guarded<std::vector<int>> numbers;
    const lock_lease older("n", 1);
    const lock_lease newer("n", 2);
    CHECK(numbers.with(older, [](std::vector<int>& n) { n.push_back(1); }).has_value());
    CHECK(numbers.with(newer, [](std::vector<int>& n) { n.push_back(2); }).has_value());
    const auto late = numbers.with(older, [](std::vector<int>& n) { n.push_back(3); });
    REQUIRE_FALSE(late.has_value());
    CHECK(late.error().code == errc::stale_lease);
    CHECK(late.error().message == "fencing token 1 is stale: 2 was here before");
    CHECK(numbers.with(newer, [](std::vector<int>& n) { return n.size(); }).value() == 2);
}
