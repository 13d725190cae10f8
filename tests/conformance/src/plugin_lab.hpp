// What a case of a store or of a transport works with: a runtime to call it from, and a way to let time pass on its clock.
#pragma once

#include <chrono>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/when_all.hpp>

#include "check.hpp"
#include "on_runtime.hpp"

namespace holdfast::conformance {

using namespace std::chrono_literals;

// For leases whose end a case waits for. Long enough that nothing else in the case runs into it.
inline constexpr auto short_lease = 100ms;

class plugin_lab {
public:
    plugin_lab(const plugin_lab&) = delete;
    plugin_lab& operator=(const plugin_lab&) = delete;

    runtime& on() const noexcept { return on_; }
    int rounds() const noexcept { return rounds_; }

    template <class T>
    T await(task<T> what) {
        return sync_wait(on(), std::move(what));
    }
    // The call must go well; its value.
    template <class T>
    T ok(task<result<T>> call, std::string_view what, std::source_location where = std::source_location::current()) {
        result<T> answer = await(std::move(call));
        return value_of(std::move(answer), what, where);
    }
    template <class T>
    static T value_of(result<T> answer, std::string_view what,
                      std::source_location where = std::source_location::current()) {
        if (!answer)
            fail_check(std::string(what) + ": failed with " + std::string(to_text(answer.error().code)) + " (" +
                           answer.error().message + ")",
                       where);
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }
    // The call must be refused with one of these, and say something about it.
    template <class T>
    error refused(task<result<T>> call, std::vector<errc> with, std::string_view what,
                  std::source_location where = std::source_location::current()) {
        const result<T> answer = await(std::move(call));
        if (answer) fail_check(std::string(what) + ": expected to be refused, went well", where);
        for (const errc each : with) {
            if (answer.error().code != each) continue;
            check(!answer.error().message.empty(), "a refusal says why", where);
            return answer.error();
        }
        fail_check(std::string(what) + ": expected to be refused with " + shown(with) + ", found " +
                       shown(answer.error().code) + " (" + answer.error().message + ")",
                   where);
    }
    // All at the same time, each from a runtime thread.
    template <class T>
    std::vector<T> at_once(std::vector<task<T>> calls) {
        return await(when_all(on_runtime_threads(std::move(calls))));
    }
    void at_once(std::vector<task<void>> calls) { await(when_all(on_runtime_threads(std::move(calls)))); }

    virtual store_time now() = 0;
    // Lets at least this much time pass on the plugin's clock.
    void pass(duration d) {
        const store_time until = now() + std::chrono::ceil<std::chrono::microseconds>(d);
        for (store_time present = now(); present < until; present = now()) block_for(on(), until - present);
    }

    // Each is newer than the one before. Any thread.
    identifier next_id() {
        const std::lock_guard lock(mutex_);
        id_time_ += 1ms;
        return ids_.next(id_time_);
    }

protected:
    plugin_lab(runtime& on, int rounds) : on_(on), rounds_(rounds) {}
    ~plugin_lab() = default;

private:
    template <class T>
    std::vector<task<T>> on_runtime_threads(std::vector<task<T>> calls) {
        std::vector<task<T>> there;
        for (auto& each : calls) there.push_back(on_runtime(on(), std::move(each)));
        return there;
    }

    runtime& on_;
    const int rounds_;
    std::mutex mutex_; // guards what makes ids
    identifier_source ids_{1};
    std::chrono::system_clock::time_point id_time_{std::chrono::hours{24 * 365 * 50}};
};

} // namespace holdfast::conformance
