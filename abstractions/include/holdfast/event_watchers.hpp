// For authors of events plugins: who watches which subscriptions, as event_transport::watch() asks for it.
#pragma once

#include <holdfast/event_transport.hpp>
#include <holdfast/watchers.hpp>

namespace holdfast {

using event_watchers = watchers<event_watch>;

// For a plugin whose hints come from what stores use as well. Null stays null.
inline std::unique_ptr<event_watch> to_event_watch(std::unique_ptr<job_watch> from) {
    struct holder final : event_watch {
        explicit holder(std::unique_ptr<job_watch> w) : held(std::move(w)) {}
        std::unique_ptr<job_watch> held;
    };
    if (from == nullptr) return nullptr;
    return std::make_unique<holder>(std::move(from));
}

} // namespace holdfast
