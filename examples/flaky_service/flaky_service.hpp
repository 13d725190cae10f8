// A service that is well, degrades, dies, comes back and is well again, always in the same way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string_view>

#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace demo {

using namespace std::chrono_literals;

// A part of the story. Shares are in percent of the requests; what is neither an error nor a hang is answered.
struct chapter {
    holdfast::duration from;
    unsigned errors;
    unsigned hangs;
    holdfast::duration quickest;
    holdfast::duration slowest;
    std::string_view title;
};

inline constexpr std::array story = {
    chapter{0s, 0, 0, 5ms, 15ms, "the service is well"},
    chapter{1500ms, 32, 8, 10ms, 60ms, "the service degrades: one request in three fails, some hang"},
    chapter{3500ms, 30, 70, 5ms, 20ms, "the service is down: requests hang or fail"},
    chapter{5500ms, 10, 0, 10ms, 60ms, "the service comes back: slow, a few requests fail"},
    chapter{6500ms, 0, 0, 5ms, 15ms, "the service is well again"},
};
inline constexpr holdfast::duration end_of_story = 8s;

// Any thread.
class flaky_service {
public:
    flaky_service(holdfast::runtime& on, holdfast::time_point opening) : on_(on), opening_(opening) {}

    // Throws unavailable. A request that hangs does so until `stop` fires or the connection breaks.
    holdfast::task<void> answer(int request, int attempt, std::stop_token stop);

    int requests() const noexcept { return requests_; }
    int requests_while_down() const noexcept { return while_down_; }

private:
    const chapter& now_playing() const;

    holdfast::runtime& on_;
    const holdfast::time_point opening_;
    std::atomic<int> requests_ = 0;
    std::atomic<int> while_down_ = 0;
};

} // namespace demo
