#include "configuration.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <holdfast/nearest.hpp>

#include "policy_overrides.hpp"

namespace holdfast::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> sections = {"runtime", "plugins", "log", "application", "policies"};
constexpr std::string_view default_runtime = "asio";

std::unexpected<error> refuse(const std::string& where, const std::string& why) {
    return fail(errc::configuration, where + ": " + why);
}

settings to_settings(const config_table& table) {
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

result<plugin_choice> read_plugin_choice(const config_table& table) {
    plugin_choice choice{"[" + table.path + "]", {}, table.where, {}};
    for (config_entry& each : flatten(table)) {
        if (each.key != "plugin") {
            choice.own.push_back(std::move(each));
            continue;
        }
        if (each.value.list || each.value.items.front().empty())
            return refuse(each.value.where, choice.section + " plugin: expected the name of a plugin");
        choice.where = each.value.where;
        choice.plugin = std::move(each.value.items.front());
    }
    return choice;
}

result<void> read_runtime(configuration& into, const config_table& table) {
    auto choice = read_plugin_choice(table);
    if (!choice) return std::unexpected(std::move(choice.error()));
    if (choice->plugin.empty()) choice->plugin = default_runtime;
    into.runtime = std::move(*choice);
    into.runtime_given = true;
    return {};
}

result<void> read_application(configuration& into, const config_table& table) {
    auto choice = read_plugin_choice(table);
    if (!choice) return std::unexpected(std::move(choice.error()));
    if (choice->plugin.empty()) return refuse(table.where, "[application] needs the key \"plugin\"");
    into.application = std::move(*choice);
    return {};
}

result<void> read_plugins(configuration& into, const config_table& table) {
    return read_section(table, [&](settings& values) {
        for (const std::string& folder : values.list("path")) into.plugin_path.push_back(into.folder / folder);
    });
}

result<void> read_log(configuration& into, const config_table& table) {
    constexpr std::array levels = {log_level::debug, log_level::info, log_level::warning, log_level::error};
    std::string text;
    auto read = read_section(table, [&](settings& values) { text = values.text("level", "info"); });
    if (!read) return read;
    const auto found = std::ranges::find(levels, text, [](log_level each) { return to_text(each); });
    if (found == levels.end())
        return refuse(table.values.front().value.where,
                      "[log] level: expected \"debug\", \"info\", \"warning\" or \"error\", found \"" + text + "\"");
    into.level = *found;
    return {};
}

result<void> read_policies(configuration& into, const config_table& table) {
    if (!table.values.empty()) {
        const config_entry& stray = table.values.front();
        return refuse(stray.value.where, "[policies] has no key \"" + stray.key + "\"; write it in [policies.NAME]");
    }
    for (const config_table& each : table.tables) {
        auto read = read_policy_override(each);
        if (!read) return std::unexpected(std::move(read.error()));
        into.policies.push_back(std::move(*read));
    }
    return {};
}

result<void> read_table(configuration& into, const config_table& table) {
    if (table.name == "runtime") return read_runtime(into, table);
    if (table.name == "plugins") return read_plugins(into, table);
    if (table.name == "log") return read_log(into, table);
    if (table.name == "application") return read_application(into, table);
    if (table.name == "policies") return read_policies(into, table);
    return refuse(table.where, "there is no section [" + table.name + "]" + did_you_mean(table.name, sections));
}

} // namespace

settings plugin_choice::to_settings() const {
    settings values(section);
    for (const config_entry& each : own) values.set(each.key, each.value);
    return values;
}

bool plugin_choice::says_the_same_as(const plugin_choice& other) const {
    return plugin == other.plugin && std::ranges::is_permutation(own, other.own, same_text);
}

result<configuration> read_configuration(std::string_view text, const std::string& name) {
    auto document = parse_toml(text, name);
    if (!document) return std::unexpected(std::move(document.error()));
    if (!document->values.empty()) {
        const config_entry& stray = document->values.front();
        return refuse(stray.value.where, "\"" + stray.key + "\" stands before the first section");
    }
    configuration read;
    read.name = name;
    read.folder = fs::path(name).parent_path();
    read.runtime = {"[runtime]", std::string(default_runtime), name, {}};
    for (const config_table& each : document->tables)
        if (auto done = read_table(read, each); !done) return std::unexpected(std::move(done.error()));
    return read;
}

result<configuration> read_configuration_file(const fs::path& file, const std::string& name) {
    std::error_code problem;
    if (!fs::exists(file, problem)) return refuse(name, "there is no such file");
    if (fs::is_directory(file, problem)) return refuse(name, "a folder, expected a file");
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (stream.peek() != std::ifstream::traits_type::eof()) text << stream.rdbuf();
    if (stream.bad() || !stream.is_open()) return refuse(name, "cannot be read");
    return read_configuration(text.view(), name);
}

} // namespace holdfast::detail
