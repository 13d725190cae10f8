// What a configuration file says, checked as far as that is possible without plugins and without the program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/settings.hpp>

#include "toml_document.hpp"

namespace holdfast::detail {

// [runtime] and [application]: which plugin, and the keys that are the plugin's own.
struct plugin_choice {
    std::string section; // "[runtime]"
    std::string plugin;  // a name, or a file when it has a '/'
    std::string where;   // "desk.toml:2", or "desk.toml" when it is the default
    std::vector<config_entry> own;

    settings to_settings() const;
    bool says_the_same_as(const plugin_choice& other) const;
};

struct policy_override {
    std::string policy;
    std::string where;
    std::vector<config_entry> fields; // dotted keys, known and of the right form
};

struct configuration {
    std::string name;             // what messages call it
    std::filesystem::path folder; // where relative paths start
    plugin_choice runtime;
    bool runtime_given = false;
    std::optional<plugin_choice> application;
    std::vector<std::filesystem::path> plugin_path;
    log_level level = log_level::info;
    std::vector<policy_override> policies;
};

// Every error is one line that begins with name and line.
result<configuration> read_configuration(std::string_view text, const std::string& name);
result<configuration> read_configuration_file(const std::filesystem::path& file, const std::string& name);

} // namespace holdfast::detail
