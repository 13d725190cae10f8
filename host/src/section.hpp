// A section of the configuration as settings: what is not asked for is refused.
#pragma once

#include <optional>

#include <holdfast/duration.hpp>
#include <holdfast/error.hpp>
#include <holdfast/settings.hpp>

#include "toml_document.hpp"

namespace holdfast::detail {

inline settings to_settings(const config_table& table) {
    settings values("[" + table.path + "]");
    for (config_entry& each : flatten(table)) values.set(std::move(each.key), std::move(each.value));
    return values;
}

// Runs `read` on the section's settings, then refuses what it did not ask for.
template <class Read>
result<void> read_section(const config_table& table, Read read) {
    settings values = to_settings(table);
    try {
        read(values);
    } catch (const failed& e) {
        return std::unexpected(e.what_failed());
    }
    if (auto unknown = values.first_unknown()) return std::unexpected(std::move(*unknown));
    return {};
}

inline int read_int(settings& from, std::string_view key, int otherwise, int least, std::int64_t most) {
    return static_cast<int>(from.integer(key, otherwise, least, most));
}

// Nothing where it is not written.
inline std::optional<duration> read_heartbeat(settings& from, duration lease) {
    if (!from.has("heartbeat")) return std::nullopt;
    const duration heartbeat = from.positive_time("heartbeat", {});
    if (heartbeat >= lease)
        from.refuse("heartbeat", "a duration shorter than the lease, which is " + to_short_text(lease));
    return heartbeat;
}

} // namespace holdfast::detail
