// [relay], [consumers] and [consumers.NAME].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/event_consumer.hpp>
#include <holdfast/event_relay.hpp>
#include <holdfast/event_worker.hpp>

#include "toml_document.hpp"

namespace holdfast::detail {

struct relay_settings {
    bool work = true; // false: this process leaves what it publishes to others
    relay_options how;
    std::vector<config_entry> written; // all of it, to tell a change

    bool says_the_same_as(const relay_settings& other) const;
};

// [consumers.NAME]: what is given there goes before what the program says.
struct consumer_override {
    std::string name;
    std::string where;
    std::optional<int> concurrency{};
    std::optional<duration> timeout{};
    std::optional<std::string> policy{};
    std::optional<bool> inbox{};
    std::optional<duration> remember{};
    std::optional<int> max_crashes{};
    std::optional<bool> from_start{};

    void apply_to(consumer_options& options) const;
};

struct consumer_settings {
    bool work = true; // false: this process consumes nothing
    event_worker_options how;
    std::vector<consumer_override> overrides;
    std::vector<config_entry> written;

    bool says_the_same_as(const consumer_settings& other) const;
    const consumer_override* of(std::string_view consumer) const;
};

result<relay_settings> read_relay_settings(const config_table& table);
result<consumer_settings> read_consumer_settings(const config_table& table);

} // namespace holdfast::detail
