// A call on its way to a thread of the store's own, and back to the runtime.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <holdfast/error.hpp>
#include <holdfast/runtime.hpp>

#include "session.hpp"

namespace holdfast::sqlite {

// Lives in the coroutine that waits for it. As `work` it resumes that coroutine.
class item : public work {
public:
    enum class kind : unsigned char { call, unit_begin, unit_commit, unit_rollback, unit_dropped };

    explicit item(kind k) noexcept : what(k) { run = &resume_waiting; }
    item(const item&) = delete;
    item& operator=(const item&) = delete;
    virtual ~item() = default;

    virtual void execute(session& s) = 0; // may throw holdfast::failed: then its writes are undone
    virtual void refuse(const error& why) = 0;

    const kind what;
    item* following = nullptr; // in the queue that holds it
    std::chrono::steady_clock::time_point queued{};
    std::coroutine_handle<> waiting;

private:
    static void resume_waiting(work& w, wake) noexcept { static_cast<item&>(w).waiting.resume(); }
};

// Back to its coroutine. The item may be gone when this returns.
inline void finish(item& done, runtime& on) noexcept {
    if (!on.post(done)) done.run(done, wake::stopped); // a stopped runtime cannot take it; go on right here
}

// In order, not owning.
class item_list {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    std::size_t size() const noexcept { return size_; }
    item* front() const noexcept { return first_; }
    void push(item& i) noexcept {
        i.following = nullptr;
        (first_ == nullptr ? first_ : last_->following) = &i;
        last_ = &i;
        ++size_;
    }
    item* pop() noexcept {
        item* i = first_;
        if (i == nullptr) return nullptr;
        first_ = i->following;
        --size_;
        return i;
    }
    item_list take() noexcept { return std::exchange(*this, item_list{}); }
    void put_before(item_list earlier) noexcept {
        while (item* i = pop()) earlier.push(*i);
        *this = earlier;
    }

private:
    item* first_ = nullptr;
    item* last_ = nullptr;
    std::size_t size_ = 0;
};

inline error store_closed() {
    return {errc::stopped, "sqlite: the store has been closed", std::nullopt};
}

// Awaited: sends a function of session& down a lane (submit, refusal), and gives result<its value>.
template <class Lane, class Function>
class submitted final : item {
public:
    using value = std::invoke_result_t<Function&, session&>;

    submitted(Lane lane, Function f) : item(kind::call), lane_(lane), function_(std::move(f)) {}

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
        waiting = awaiting;
        if (lane_.submit(*this)) return true;
        refuse(lane_.refusal());
        return false;
    }
    result<value> await_resume() { return std::move(*answer_); }

private:
    void execute(session& s) override {
        if constexpr (std::is_void_v<value>) {
            function_(s);
            answer_.emplace();
        } else {
            answer_.emplace(function_(s));
        }
    }
    void refuse(const error& why) override { answer_.emplace(std::unexpected(why)); }

    Lane lane_;
    Function function_;
    std::optional<result<value>> answer_;
};

// Awaited: the beginning or the end of a unit of work.
template <class Lane>
class unit_step final : item {
public:
    unit_step(Lane lane, kind k) noexcept : item(k), lane_(lane) {}

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
        waiting = awaiting;
        if (lane_.submit(*this)) return true;
        refuse(lane_.refusal());
        return false;
    }
    result<void> await_resume() { return std::move(answer_); }

private:
    void execute(session&) override {}
    void refuse(const error& why) override { answer_ = std::unexpected(why); }

    Lane lane_;
    result<void> answer_;
};

// The error that is being handled. Call it in a catch block.
error current_error() noexcept;

} // namespace holdfast::sqlite
