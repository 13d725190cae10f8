// Threads and connections of the store's own: calls wait for the server here and never on a thread of the runtime.
// There are as many threads as connections. A unit of work holds a connection for as long as it lives, and needs no
// more than a thread for its calls, so those always get through.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

#include <holdfast/postgres/connection.hpp>

namespace holdfast::postgres {

class pool;

// The right to use one connection, which may have to be opened first. Goes back to the pool with the object.
class slot {
public:
    slot() = default;
    slot(pool& of, std::unique_ptr<connection> idle) noexcept : pool_(&of), connection_(std::move(idle)) {}
    slot(slot&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), connection_(std::move(other.connection_)) {}
    slot& operator=(slot&& other) noexcept;
    ~slot() { give_back(); }

    // An open connection. errc::unavailable: nothing was sent.
    result<connection*> open();
    connection* get() noexcept { return connection_.get(); }
    void drop() noexcept { connection_.reset(); }

private:
    void give_back() noexcept;
    pool* pool_ = nullptr;
    std::unique_ptr<connection> connection_;
};

// All members from any thread.
class pool {
public:
    pool(options how, runtime& on);
    ~pool(); // no call may be under way
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;

    const options& how() const noexcept { return how_; }
    runtime& on() const noexcept { return on_; }
    // A proxy may give every transaction another session: said by the configuration, or seen.
    bool pooled() const noexcept { return pooled_.load(std::memory_order_relaxed); }
    void saw_pooler() noexcept { pooled_.store(true, std::memory_order_relaxed); }

    struct item {
        virtual void run(slot with) noexcept = 0;
        bool needs_slot = true;
        time_point give_up{};

    protected:
        ~item() = default;
    };
    // False: it was not taken, for the pool is closing.
    bool push(item& what);
    // A connection that is free at once and that nobody waits for.
    std::optional<slot> take_free();

    // Runs function(slot) -> result<T> on a thread of the pool and resumes on the runtime. With needs_slot the slot is
    // one of the pool's connections, else it is empty. errc::unavailable when none became free in time.
    template <class T, class Function>
    task<result<T>> run(Function function, bool needs_slot = true) {
        call<T, Function> waiting(*this, std::move(function), needs_slot);
        co_return co_await waiting;
    }
    // The same on this very thread if that would only wait for it. For what waits for nothing but the server: a call that
    // could wait for another one that this thread is to begin must not come here.
    template <class T, class Function>
    task<result<T>> run_here(Function function) {
        if (on_.borrow_thread())
            if (auto free = take_free()) co_return answer_of<T>(function, std::move(*free));
        call<T, Function> waiting(*this, std::move(function), true);
        co_return co_await waiting;
    }

    // Cuts the connection when it is still in use after statement_timeout, or `limit`; one watch per connection.
    class watch {
    public:
        watch(pool& of, connection& what) : watch(of, what, of.how_.statement_timeout) {}
        watch(pool& of, connection& what, duration limit);
        ~watch();
        watch(const watch&) = delete;
        watch& operator=(const watch&) = delete;

    private:
        pool& pool_;
        connection& what_;
    };

    static constexpr duration patience = std::chrono::seconds{30}; // for a free connection

private:
    friend class slot;
    template <class T, class Function>
    class call;

    template <class T, class Function>
    static result<T> answer_of(Function& function, slot with) {
        try {
            return function(std::move(with));
        } catch (const std::exception& e) {
            return fail(errc::internal, e.what());
        } catch (...) {
            return fail(errc::internal, "something that is not a std::exception was thrown");
        }
    }

    struct sleeper {
        std::condition_variable woken;
        bool called = false; // and no longer in asleep_
    };
    sleeper* call_one() noexcept;
    item* take(slot& with);
    slot take_slot();
    void work_on();
    void watch_over(const std::stop_token& stop);
    void put_back(std::unique_ptr<connection> used) noexcept;

    const options how_;
    runtime& on_;
    std::atomic<bool> pooled_;

    std::mutex mutex_;
    std::vector<sleeper*> asleep_; // the latest last
    std::deque<item*> ready_;      // need nothing but a thread
    std::deque<item*> waiting_;    // for a slot
    std::vector<std::unique_ptr<connection>> idle_;
    std::size_t free_slots_;
    bool closing_ = false;

    std::mutex watch_mutex_;
    std::condition_variable_any watch_changed_;
    std::vector<std::pair<connection*, time_point>> watched_;

    std::vector<std::jthread> threads_;
    std::jthread watcher_;
};

template <class T, class Function>
class pool::call final : item, work {
public:
    call(pool& of, Function function, bool with_slot) : pool_(of), function_(std::move(function)) {
        needs_slot = with_slot;
        work::run = [](work& w, wake) noexcept { static_cast<call&>(w).awaiting_.resume(); };
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) {
        awaiting_ = awaiting;
        give_up = std::chrono::steady_clock::now() + patience;
        if (pool_.push(*this)) return true;
        answer_ = fail(errc::stopped, "the store is closing");
        return false;
    }
    result<T> await_resume() { return std::move(*answer_); }

private:
    void run(slot with) noexcept override {
        if (needs_slot && std::chrono::steady_clock::now() >= give_up) {
            answer_ = fail(errc::unavailable, pool_.how().place() + ": all " + std::to_string(pool_.how().connections) +
                                                  " connections have been in use for " + to_text(patience));
        } else {
            answer_ = answer_of<T>(function_, std::move(with));
        }
        with = {};
        runtime& on = pool_.on_;
        if (!on.post(*this)) awaiting_.resume(); // a stopped runtime cannot take us; go on right here
    }

    pool& pool_;
    Function function_;
    std::coroutine_handle<> awaiting_;
    std::optional<result<T>> answer_;
};

} // namespace holdfast::postgres
