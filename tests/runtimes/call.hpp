// Work and timers with a function inside, and a way to wait for them.
#pragma once

#include <functional>
#include <utility>

#include <holdfast/runtime.hpp>

namespace holdfast::testing {

struct call : work {
    explicit call(std::function<void(wake)> f) : what(std::move(f)) {
        run = [](work& w, wake why) noexcept { static_cast<call&>(w).what(why); };
    }
    call(const call&) = delete;
    std::function<void(wake)> what;
};

struct timed_call : timer {
    explicit timed_call(std::function<void(wake)> f) : what(std::move(f)) {
        run = [](work& w, wake why) noexcept { static_cast<timed_call&>(static_cast<timer&>(w)).what(why); };
    }
    timed_call(const timed_call&) = delete;
    std::function<void(wake)> what;
};

} // namespace holdfast::testing
