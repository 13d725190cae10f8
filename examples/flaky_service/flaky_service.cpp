#include "flaky_service.hpp"

#include <stdexcept>

#include <holdfast/backoff.hpp>
#include <holdfast/error.hpp>
#include <holdfast/sleep.hpp>

namespace demo {

namespace {

constexpr std::uint64_t seed = 2026;
constexpr holdfast::duration connection_breaks_after = 2s;

// A request's fate depends on what it is and on nothing else, so every performance is the same.
holdfast::random_series fate_of(int request, int attempt) {
    return holdfast::random_series(seed + 1000 * static_cast<std::uint64_t>(request) +
                                   static_cast<std::uint64_t>(attempt));
}

} // namespace

const chapter& flaky_service::now_playing() const {
    const holdfast::duration at = on_.now() - opening_;
    const chapter* playing = &story.front();
    for (const chapter& each : story)
        if (at >= each.from) playing = &each;
    return *playing;
}

holdfast::task<void> flaky_service::answer(int request, int attempt, std::stop_token stop) {
    const chapter& playing = now_playing();
    ++requests_;
    if (playing.hangs > 50) ++while_down_;

    auto fate = fate_of(request, attempt);
    const auto draw = fate.next() % 100;
    const auto spread = static_cast<std::uint64_t>((playing.slowest - playing.quickest).count());
    holdfast::duration takes = playing.quickest + holdfast::duration(static_cast<std::int64_t>(fate.next() % spread));
    const bool hangs = draw < playing.hangs;
    if (hangs) takes = connection_breaks_after;

    auto working = holdfast::sleep_for(on_, takes, std::move(stop));
    if (co_await working != holdfast::sleep_end::due) throw holdfast::operation_cancelled("the caller hung up");
    if (hangs) throw std::runtime_error("connection broken");
    if (draw < playing.hangs + playing.errors) throw std::runtime_error("503 unavailable");
}

} // namespace demo
