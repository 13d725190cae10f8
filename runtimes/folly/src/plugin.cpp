#include <cstddef>
#include <cstdint>
#include <memory>

#include <holdfast/folly_runtime.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

namespace {

std::unique_ptr<holdfast::runtime> make_runtime(holdfast::plugin_context& context) {
    auto& settings = context.settings();
    holdfast::folly_options options;
    const auto read = [&](const char* key, std::size_t& value, std::int64_t most) {
        value = static_cast<std::size_t>(settings.integer(key, static_cast<std::int64_t>(value), 1, most));
    };
    read("threads", options.threads, 256);
    read("blocking_threads", options.blocking_threads, 1024);
    read("blocking_queue", options.blocking_queue, 1'000'000);
    return std::make_unique<holdfast::folly_runtime>(options);
}

} // namespace

HOLDFAST_RUNTIME_PLUGIN("folly", holdfast::version_text, "threads and timers by folly", &make_runtime)
