// Told by whoever calls a blocking handler of a job or of an event: while it waits for a thread its timeouts do not run, and
// it may be called off. Any thread.
#pragma once

#include <stop_token>

#include <holdfast/error.hpp>

namespace holdfast {

class handler_clock {
public:
    virtual void handler_waits() noexcept = 0;
    // On the thread that it has got. False: it must not begin any more.
    virtual bool handler_begins() noexcept = 0;

protected:
    ~handler_clock() = default;
};

namespace detail {

// `clock` may be null. Throws operation_cancelled where the handler must not begin any more.
inline void begin_handler(handler_clock* clock, const std::stop_token& stop) {
    if (stop.stop_requested() || (clock != nullptr && !clock->handler_begins()))
        throw operation_cancelled("asked to stop before its handler had begun");
}

} // namespace detail

} // namespace holdfast
