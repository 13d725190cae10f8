#include <holdfast/event_transport.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "memory_transport.hpp"

namespace {

std::unique_ptr<holdfast::event_transport> make(holdfast::plugin_context& context) {
    auto& settings = context.settings();
    holdfast::events_memory::options with;
    const auto count = [&](const char* key, std::size_t otherwise, std::int64_t most) {
        return static_cast<std::size_t>(settings.integer(key, static_cast<std::int64_t>(otherwise), 1, most));
    };
    with.keep = settings.time("keep", with.keep);
    with.max_backlog = count("max_backlog", with.max_backlog, std::int64_t{1} << 40);
    with.max_payload = count("max_payload", with.max_payload, std::int64_t{1} << 30);
    settings.text("namespace", ""); // every transport has the key; here nothing is shared
    return holdfast::events_memory::make_transport(with, context.runtime());
}

} // namespace

HOLDFAST_EVENTS_PLUGIN("memory", holdfast::version_text, "events within this process, gone with it", &make)
