// For authors of events plugins: who watches which subscriptions, as event_transport::watch() asks for it.
#pragma once

#include <holdfast/event_transport.hpp>
#include <holdfast/watchers.hpp>

namespace holdfast {

using event_watchers = watchers<event_watch>;

} // namespace holdfast
