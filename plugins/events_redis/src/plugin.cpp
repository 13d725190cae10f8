#include <memory>

#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "transport.hpp"

namespace {

std::unique_ptr<holdfast::event_transport> make(holdfast::plugin_context& context) {
    if (context.runtime() == nullptr)
        throw holdfast::failed({holdfast::errc::plugin, "the redis events plugin needs a runtime", {}});
    return std::make_unique<holdfast::events_redis::transport>(
        holdfast::events_redis::transport_options::from(context.settings()), *context.runtime());
}

} // namespace

HOLDFAST_EVENTS_PLUGIN("redis", holdfast::version_text, "events on a Redis server", &make)
