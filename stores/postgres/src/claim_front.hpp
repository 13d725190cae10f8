// Where claims of one process have come to in a queue, so that the next one need not walk over the index entries of all
// that was taken before, which stay there until a vacuum. Now and then a claim looks at everything all the same: what was
// given back in between is earlier than the front. Pure but for the time, which is the caller's.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_store.hpp>

namespace holdfast::postgres {

class claim_front {
public:
    struct place {
        std::string queue;
        int priority = 0;
        std::int64_t due = 0;
        identifier id{};
        time_point looked_at_all{}; // of that queue
    };
    static constexpr duration trusted_for = std::chrono::milliseconds{250};
    static constexpr int worth_it = 50; // jobs; a smaller claim has the exact order

    // Nothing: look at everything.
    std::optional<place> before(const claim_request& request, time_point now) {
        const std::lock_guard lock(mutex_);
        const bool trusted = front_ && now - front_->looked_at_all < trusted_for && request.limit >= worth_it &&
                             std::ranges::find(request.queues, front_->queue) != request.queues.end();
        return trusted ? front_ : std::nullopt;
    }
    // `last`: the last job of a claim that got as many as it asked for; nothing when there were not so many. `from`: what
    // before() gave at `began`.
    void after(std::optional<place> last, const std::optional<place>& from, time_point began) {
        if (last) last->looked_at_all = from ? from->looked_at_all : began;
        const std::lock_guard lock(mutex_);
        front_ = std::move(last);
    }

private:
    std::mutex mutex_;
    std::optional<place> front_;
};

} // namespace holdfast::postgres
