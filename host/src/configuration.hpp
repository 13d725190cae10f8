// What a configuration file says, checked as far as that is possible without plugins and without the program.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/facet.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/promises.hpp>
#include <holdfast/settings.hpp>

#include "event_settings.hpp"
#include "job_settings.hpp"
#include "schedule_overrides.hpp"
#include "toml_document.hpp"

namespace holdfast::detail {

// [runtime], [store], [events], [application]: which plugin, and the keys that are the plugin's own.
struct plugin_choice {
    std::string section; // "[runtime]"
    std::string plugin;  // a name, or a file when it has a '/'
    std::string where;   // "desk.toml:2", or "desk.toml" when it is the default
    std::vector<config_entry> own;

    settings to_settings(const std::filesystem::path& folder) const;
    bool says_the_same_as(const plugin_choice& other) const;
};

bool same_choice(const std::optional<plugin_choice>& a, const std::optional<plugin_choice>& b);

struct policy_override {
    std::string policy;
    std::string where;
    std::vector<config_entry> fields; // dotted keys, known and of the right form
};

// [store] and [store.FACET].
struct store_choices {
    std::optional<plugin_choice> main;
    std::array<std::optional<plugin_choice>, all_facets.size()> facets; // by number

    const std::optional<plugin_choice>& of(facet f) const { return facets[static_cast<std::size_t>(f)]; }
    bool says_the_same_as(const store_choices& other) const;
};

struct asked_promises {
    std::string who; // "desk.toml:9: [promises.jobs]", "host.require()"
    promises what;
    std::optional<facet> of; // of all when empty

    bool says_the_same_as(const asked_promises& other) const { return what == other.what && of == other.of; }
};

struct configuration {
    std::string name;             // what messages call it
    std::filesystem::path folder; // where relative paths start
    plugin_choice runtime;
    bool runtime_given = false;
    store_choices stores;
    std::vector<asked_promises> promises;
    job_settings jobs;
    std::optional<plugin_choice> events;
    std::optional<asked_promises> event_promises; // [promises.events]
    relay_settings relay;
    consumer_settings consumers;
    std::optional<plugin_choice> application;
    std::vector<std::filesystem::path> plugin_path;
    log_level level = log_level::info;
    std::vector<policy_override> policies;
    std::vector<schedule_override> schedules;
};

// What a configuration calls it: "power_loss".
std::string survives_key(survives s);

// Every error is one line that begins with name and line.
result<configuration> read_configuration(std::string_view text, const std::string& name);
result<configuration> read_configuration_file(const std::filesystem::path& file, const std::string& name);

} // namespace holdfast::detail
