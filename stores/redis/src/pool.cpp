#include "pool.hpp"

#include <utility>

namespace holdfast::redis {

result<std::unique_ptr<client>> pool::take() {
    address where;
    std::unique_ptr<client> found;
    {
        std::unique_lock lock(mutex_);
        if (!freed_.wait_for(lock, timeout_, [&] { return out_ < most_; }))
            return fail(errc::unavailable, where_.place() + ": all " + std::to_string(most_) +
                                               " connections are busy; there was none for " + to_short_text(timeout_));
        ++out_;
        if (!idle_.empty()) {
            found = std::move(idle_.back());
            idle_.pop_back();
        }
        where = where_;
    }
    if (found != nullptr && found->usable()) return found;
    auto opened = connect(where, timeout_);
    if (!opened) put(nullptr);
    return opened;
}

void pool::put(std::unique_ptr<client> used) noexcept {
    if (used != nullptr && !used->usable()) used.reset();
    {
        const std::lock_guard lock(mutex_);
        --out_;
        if (used != nullptr && idle_.size() < most_) idle_.push_back(std::move(used));
    }
    freed_.notify_one();
}

void pool::move_to(std::string host, std::uint16_t port) {
    std::vector<std::unique_ptr<client>> old;
    const std::lock_guard lock(mutex_);
    if (where_.host == host && where_.port == port) return;
    if (!host.empty()) where_.host = std::move(host);
    where_.port = port;
    old.swap(idle_);
}

address pool::where() const {
    const std::lock_guard lock(mutex_);
    return where_;
}

} // namespace holdfast::redis
