// The listeners of a runner. Reading is one atomic load; adding is rare.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <holdfast/listener.hpp>

namespace holdfast {

class listeners {
public:
    using list = std::vector<std::shared_ptr<execution_listener>>;

    bool any() const noexcept { return current_.load(std::memory_order_acquire) != nullptr; }

    void add(std::shared_ptr<execution_listener> listener) {
        const std::lock_guard lock(mutex_);
        const list* before = current_.load(std::memory_order_relaxed);
        auto next = before == nullptr ? std::make_unique<list>() : std::make_unique<list>(*before);
        next->push_back(std::move(listener));
        current_.store(next.get(), std::memory_order_release);
        lists_.push_back(std::move(next)); // older lists stay: somebody may be reading them
    }

    void tell(const execution_event& e) const noexcept {
        const list* all = current_.load(std::memory_order_acquire);
        if (all == nullptr) return;
        for (const auto& each : *all) {
            try {
                each->on_event(e);
            } catch (...) { // a listener changes nothing
            }
        }
    }

    std::uint64_t next_execution() const noexcept { return executions_.fetch_add(1, std::memory_order_relaxed) + 1; }

private:
    std::atomic<const list*> current_ = nullptr;
    mutable std::atomic<std::uint64_t> executions_ = 0;
    std::mutex mutex_;
    std::vector<std::unique_ptr<list>> lists_;
};

} // namespace holdfast
