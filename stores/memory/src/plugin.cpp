#include <holdfast/plugin.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "memory_store.hpp"

namespace {

std::unique_ptr<holdfast::store> make(holdfast::plugin_context& context) {
    auto& settings = context.settings();
    holdfast::memory::options with;
    with.keep.succeeded = settings.time("keep_succeeded", with.keep.succeeded);
    with.keep.tombstones = settings.time("keep_tombstones", with.keep.tombstones);
    with.max_payload = static_cast<std::size_t>(
        settings.integer("max_payload", static_cast<std::int64_t>(with.max_payload), 1, std::int64_t{1} << 30));
    settings.text("namespace",
                  ""); // every store has the key; here nothing is shared, so there is nothing to tell apart
    return holdfast::memory::make_store(with, context.runtime());
}

} // namespace

HOLDFAST_STORE_PLUGIN("memory", holdfast::version_text, "everything in this process, gone with it", &make)
