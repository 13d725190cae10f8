// What the facets of one memory store share: the data, the lock that guards it, the clock, and units of work.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/job_watchers.hpp>
#include <holdfast/runtime_clock.hpp>
#include <holdfast/store_limits.hpp>
#include <holdfast/unit_of_work.hpp>

#include "job_rules.hpp"
#include "key_rules.hpp"
#include "message_rules.hpp"

namespace holdfast::memory {

struct options {
    job_retention keep;
    std::size_t max_payload = store_limits::default_max_payload;
};

struct data {
    explicit data(const options& with)
        : jobs(undo, tokens, with.keep), keys(undo, tokens), locks(undo, tokens), messages(undo, tokens) {}
    void clear();

    journal undo;
    token_series tokens; // not cleared, so that no token comes twice
    job_rules jobs;
    key_rules keys;
    lock_rules locks;
    message_rules messages;
};

class core;

// Keeps what was asked of it. Every call does all of it over again on the present data and takes it back, so that it
// answers as a transaction would; commit() does it for good, if each call would still answer the same.
class unit final : public unit_of_work {
public:
    explicit unit(core& in) : in_(in) {}
    task<result<void>> commit() override;
    task<result<void>> rollback() override;

private:
    friend class core;
    using step = std::function<result<void>(data&, store_time)>; // an error when its answer has changed

    result<void> redo(data& on, store_time now) const;

    core& in_;
    std::vector<step> steps_;
    bool ended_ = false;
};

class core {
public:
    core(const options& with, const runtime* on) : with_(with), clock_(on), data_(with) {}

    store_time now() const { return clock_.now(); }
    std::size_t max_payload() const noexcept { return with_.max_payload; }

    // call(data&, store_time) gives a value or a result, at once.
    template <class Call>
    auto run(Call call) {
        return guarded([&] {
            std::unique_lock lock(mutex_);
            auto answer = as_result(call(data_, now()));
            wake(lock);
            return answer;
        });
    }
    // The same as part of a unit of work, if there is one; `call` is copied then. An answer that is no longer the same
    // at the commit makes that fail with `changed`.
    template <class Call>
    auto run(unit_of_work* in, Call call, errc changed) {
        using answer_type = decltype(as_result(call(std::declval<data&>(), store_time())));
        if (in == nullptr) return run(std::move(call));
        return guarded([&]() -> answer_type {
            auto* mine = dynamic_cast<unit*>(in);
            if (mine == nullptr || &mine->in_ != this)
                return fail(errc::invalid_argument, "the unit of work belongs to another store");
            const std::lock_guard lock(mutex_);
            if (mine->ended_) return fail(errc::invalid_argument, "the unit of work has ended");
            return answer_in<answer_type>(*mine, std::move(call), changed);
        });
    }
    result<void> commit(unit& which);
    result<void> end(unit& which);

    job_watchers watchers;

private:
    // Gives the lock up, then hints to those who watch what has changed.
    void wake(std::unique_lock<std::mutex>& lock) {
        const auto woken = data_.jobs.take_woken();
        lock.unlock();
        if (!woken.empty()) watchers.ring(woken);
    }
    template <class T>
    static result<T> as_result(result<T> r) {
        return r;
    }
    template <class T>
    static result<T> as_result(T value) {
        return value;
    }
    // Nothing but results leaves the store.
    template <class Call>
    static auto guarded(Call call) -> decltype(call()) {
        try {
            return call();
        } catch (const std::exception& e) {
            return fail(errc::internal, std::string("the memory store failed: ") + e.what());
        } catch (...) {
            return fail(errc::internal, "the memory store failed");
        }
    }
    struct attempt {
        journal& undo;
        explicit attempt(journal& with) : undo(with) { undo.record(); }
        ~attempt() {
            if (undo.recording()) undo.take_back();
        }
    };

    template <class T>
    static bool same(const result<T>& a, const result<T>& b) {
        if (!a || !b) return false;
        if constexpr (std::is_void_v<T>) return true;
        else return *a == *b;
    }

    template <class Answer, class Call>
    Answer answer_in(unit& which, Call call, errc changed) {
        const store_time present = now();
        const attempt trial(data_.undo);
        if (auto redone = which.redo(data_, present); !redone) return std::unexpected(redone.error());
        Answer answer = as_result(call(data_, present));
        data_.jobs.take_woken(); // by nothing that stays
        if (!answer) return answer;
        which.steps_.push_back([call, answer, changed](data& on, store_time at) -> result<void> {
            if (same(Answer(as_result(call(on, at))), answer)) return {};
            return fail(changed, "somebody else was faster: what a call in the unit of work answered no longer holds");
        });
        return answer;
    }

    options with_;
    runtime_clock clock_;
    std::mutex mutex_;
    data data_;
};

} // namespace holdfast::memory
