// Locks that look after themselves: renewed while they are held, given back when they go out of scope, and telling when
// they were lost.
//
//   holdfast::lock_keeper locks(host.locks(), host.runtime());
//   auto lock = co_await locks.try_acquire("report-2026-11");            // result<optional<held_lock>>
//   if (!lock || !*lock) co_return;                                      // somebody else is at it
//   co_await write_report((*lock)->token(), (*lock)->lost());            // stop when lost() fires
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/lock_store.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/task.hpp>
#include <holdfast/task_scope.hpp>

namespace holdfast {

struct lock_options {
    duration ttl = default_lock_ttl;       // how long it outlives a holder that died
    std::optional<duration> renew_every{}; // ttl / 3
};

namespace detail {

struct lock_state {
    lock_state(lock_store& s, runtime& r, logger* l, lock_lease held, duration for_how_long, time_point until)
        : store(s), on(r), log(l), lease(std::move(held)), ttl(for_how_long), good_until(until) {}

    // Whoever gets true gives it back to the store; nobody does twice, nor after it was lost.
    bool take_release() {
        const std::lock_guard lock(mutex);
        return !std::exchange(ended, true);
    }
    // The store granted more time. What was lost stays lost.
    void extend(time_point until) {
        const std::lock_guard lock(mutex);
        good_until = until;
        trouble = unanswered;
    }
    void note_trouble(const std::string& why) {
        const std::lock_guard lock(mutex);
        trouble = why;
    }
    // Loses it when the time that the store granted is over; else gives when that will be.
    std::optional<time_point> lose_when_over() {
        std::string why;
        {
            const std::lock_guard lock(mutex);
            if (on.now() < good_until) return good_until;
            why = trouble;
        }
        mark_lost(why);
        return std::nullopt;
    }
    void mark_lost(std::string_view why) {
        if (!take_release()) return;
        if (log != nullptr) log->warning("the lock \"" + lease.subject() + "\" was lost: " + std::string(why));
        lost.request_stop();
        let_go.request_stop(); // nobody need look after it any more
    }

    static constexpr const char* unanswered = "its renewal was not answered in time";

    lock_store& store;
    runtime& on;
    logger* log;
    const lock_lease lease;
    const duration ttl;
    std::stop_source lost;
    std::stop_source let_go;
    std::mutex mutex; // of what is below
    time_point good_until;
    std::string trouble = unanswered;
    bool ended = false;
};

} // namespace detail

// A lock that is held. Move-only; its destructor gives it back, soon and without waiting. One thread at a time.
class held_lock {
public:
    explicit held_lock(std::shared_ptr<detail::lock_state> state) noexcept : state_(std::move(state)) {}
    held_lock(held_lock&&) noexcept = default;
    held_lock& operator=(held_lock&& other) noexcept {
        if (this != &other) {
            drop();
            state_ = std::move(other.state_);
        }
        return *this;
    }
    ~held_lock() { drop(); }

    const std::string& resource() const noexcept { return state_->lease.subject(); }
    // Larger than that of any holder before. Pass it on to what the lock protects; see fence.hpp.
    std::uint64_t token() const noexcept { return state_->lease.token(); }
    // Fires when the lock could not be kept. Somebody else may have it by then.
    std::stop_token lost() const noexcept { return state_->lost.get_token(); }

    // Gives it back now, and tells whether that worked. Not an error when it was lost already.
    task<result<void>> release() {
        auto state = std::move(state_);
        return release_now(std::move(state));
    }

private:
    static task<result<void>> release_now(std::shared_ptr<detail::lock_state> state) {
        const bool mine = state != nullptr && state->take_release();
        if (state) state->let_go.request_stop();
        if (!mine) co_return result<void>{};
        auto releasing = state->store.release(state->lease);
        co_return co_await std::move(releasing);
    }
    void drop() noexcept {
        if (state_) state_->let_go.request_stop();
        state_ = nullptr;
    }

    std::shared_ptr<detail::lock_state> state_;
};

// Takes locks and keeps them. Any thread. The store and the runtime outlive it; await close() before it goes away.
class lock_keeper {
public:
    lock_keeper(lock_store& store, runtime& on, logger* log = nullptr) noexcept : store_(store), on_(on), log_(log) {}
    lock_keeper(const lock_keeper&) = delete;
    lock_keeper& operator=(const lock_keeper&) = delete;

    // Never waits: nothing when somebody else holds it. errc::invalid_argument for a renewal that comes too late,
    // errc::stopped once close() is awaited, also when that was while the store was asked.
    task<result<std::optional<held_lock>>> try_acquire(std::string resource, lock_options options = {}) {
        const auto here = scope_.try_enter(); // first, so that it leaves last: the keeper may be gone then
        if (!here) co_return closed(resource);
        const duration every = options.renew_every.value_or(options.ttl / 3);
        if (every <= duration::zero() || every >= options.ttl)
            co_return fail(errc::invalid_argument, "a lock of " + to_short_text(options.ttl) +
                                                       " cannot be kept by renewing it every " + to_short_text(every));
        const time_point good_until = saturating_add(on_.now(), options.ttl); // the store's time begins after this
        auto acquiring = store_.try_acquire(std::move(resource), options.ttl);
        auto lease = co_await std::move(acquiring);
        if (!lease) co_return std::unexpected(std::move(lease.error()));
        if (!*lease) co_return std::optional<held_lock>{};
        auto state =
            std::make_shared<detail::lock_state>(store_, on_, log_, std::move(**lease), options.ttl, good_until);
        if (scope_.joining()) {
            auto giving_back = give_back(state);
            co_await std::move(giving_back);
            co_return closed(state->lease.subject());
        }
        scope_.spawn(watch(state));
        scope_.spawn(keep(state, every));
        co_return std::optional<held_lock>(held_lock(std::move(state)));
    }

    // Ends when every lock has been let go and given back. Nothing is acquired any more. Await it once.
    task<void> close() { return scope_.join(); }

private:
    using state_ptr = std::shared_ptr<detail::lock_state>;

    static std::unexpected<error> closed(const std::string& resource) {
        return fail(errc::stopped, "the lock \"" + resource + "\" was not taken: its keeper is closed");
    }

    // Beside the renewals, since one of them may hang for longer than the store's time lasts.
    static task<void> watch(state_ptr state) {
        while (const auto over = state->lose_when_over()) {
            const auto slept = co_await sleep_until(state->on, *over, state->let_go.get_token());
            if (slept != sleep_end::due) co_return;
        }
    }

    // A renewal that fails is tried again, more often, until the time that the store granted has run out.
    static task<void> keep(state_ptr state, duration every) {
        duration wait = every;
        for (;;) {
            const auto slept = co_await sleep_for(state->on, wait, state->let_go.get_token());
            if (slept != sleep_end::due) break;
            const time_point asked = state->on.now();
            auto renewing = state->store.renew(state->lease, state->ttl);
            const auto renewed = co_await std::move(renewing);
            wait = renewed ? every : every / 8;
            if (renewed) state->extend(saturating_add(asked, state->ttl));
            else if (renewed.error().code == errc::stale_lease && !state->let_go.stop_requested())
                state->mark_lost(renewed.error().message);
            else state->note_trouble(renewed.error().message);
        }
        auto giving_back = give_back(std::move(state));
        co_await std::move(giving_back);
    }

    static task<void> give_back(state_ptr state) {
        if (!state->take_release()) co_return;
        auto releasing = state->store.release(state->lease);
        const auto released = co_await std::move(releasing);
        if (!released && state->log != nullptr)
            state->log->warning("the lock \"" + state->lease.subject() +
                                "\" was not given back and ends by its own time: " + released.error().message);
    }

    lock_store& store_;
    runtime& on_;
    logger* log_;
    task_scope scope_;
};

} // namespace holdfast
