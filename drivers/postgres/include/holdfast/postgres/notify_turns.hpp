// Which commits carry a NOTIFY of their own. Pure; not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace holdfast::postgres {

// One commit at a time carries one, after a silence that is at least as long as the last such commit took: who has much
// to tell, or waits for other processes that tell something, leaves it to somebody who tells it all together. Each that does so
// halves that time, for the commit may have been slow for another reason, and the next one should not be kept from it for ever.
class notify_turns {
public:
    using time = std::chrono::steady_clock::time_point;
    using span = std::chrono::steady_clock::duration;

    explicit notify_turns(span shortest_silence) noexcept : shortest_(shortest_silence) {}

    // True: this commit carries its own, and ended() follows whatever becomes of it.
    bool begin(time now) noexcept {
        if (under_way_ || (last_ && now - *last_ < std::max(shortest_, took_))) return false;
        under_way_ = true;
        begun_ = now;
        return true;
    }
    void ended(time now) noexcept {
        under_way_ = false;
        took_ = now - begun_;
        last_ = now;
    }
    // By somebody who tells it for several.
    void told(time now) noexcept {
        took_ /= 2;
        last_ = now;
    }

private:
    const span shortest_;
    bool under_way_ = false;
    std::optional<time> last_;
    time begun_;
    span took_{};
};

} // namespace holdfast::postgres
