#include "core.hpp"

namespace holdfast::memory {

void data::clear() {
    jobs.clear();
    keys.clear();
    locks.clear();
    messages.clear();
}

result<void> unit::redo(data& on, store_time now) const {
    for (const step& each : steps_)
        if (auto done = each(on, now); !done) return done;
    return {};
}

task<result<void>> unit::commit() {
    co_return in_.commit(*this);
}

task<result<void>> unit::rollback() {
    co_return in_.end(*this);
}

result<void> core::commit(unit& which) {
    return guarded([&]() -> result<void> {
        std::unique_lock lock(mutex_);
        if (which.ended_) return fail(errc::invalid_argument, "the unit of work has ended");
        which.ended_ = true;
        {
            const attempt trial(data_.undo);
            if (auto redone = which.redo(data_, now()); !redone) return redone;
            data_.undo.keep();
        }
        wake(lock);
        return {};
    });
}

result<void> core::end(unit& which) {
    const std::lock_guard lock(mutex_);
    if (which.ended_) return fail(errc::invalid_argument, "the unit of work has ended");
    which.ended_ = true;
    return {};
}

} // namespace holdfast::memory
