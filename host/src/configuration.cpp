#include "configuration.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <holdfast/nearest.hpp>

#include "policy_overrides.hpp"
#include "section.hpp"

namespace holdfast::detail {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> sections = {"runtime", "store",       "promises",  "jobs",
                                                       "events",  "relay",       "consumers", "plugins",
                                                       "log",     "application", "policies",  "schedules"};
constexpr std::string_view default_runtime = "asio";

std::unexpected<error> refuse(const std::string& where, const std::string& why) {
    return fail(errc::configuration, where + ": " + why);
}

std::optional<facet> facet_named(std::string_view name) {
    const auto found = std::ranges::find(all_facets, name, [](facet each) { return to_text(each); });
    return found == all_facets.end() ? std::nullopt : std::optional(*found);
}

std::unexpected<error> no_such_facet(const config_table& table) {
    std::vector<std::string_view> names;
    for (const facet each : all_facets) names.push_back(to_text(each));
    return refuse(table.where, "there is no section [" + table.path + "]" + did_you_mean(table.name, names));
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

result<plugin_choice> read_required_choice(const config_table& table) {
    auto choice = read_plugin_choice(table);
    if (choice && choice->plugin.empty()) return refuse(table.where, choice->section + " needs the key \"plugin\"");
    return choice;
}

// A table in [store] is a facet's, or a group of the plugin's own keys.
result<void> read_store(configuration& into, const config_table& table) {
    config_table own = table;
    own.tables.clear();
    bool has_facets = false;
    for (const config_table& each : table.tables) {
        if (const auto of = facet_named(each.name)) {
            auto choice = read_required_choice(each);
            if (!choice) return std::unexpected(std::move(choice.error()));
            into.stores.facets[static_cast<std::size_t>(*of)] = std::move(*choice);
            has_facets = true;
        } else if (std::ranges::find(each.values, "plugin", &config_entry::key) != each.values.end()) {
            return no_such_facet(each);
        } else {
            own.tables.push_back(each);
        }
    }
    if (has_facets && own.values.empty() && own.tables.empty()) return {};
    auto choice = read_required_choice(own);
    if (!choice) return std::unexpected(std::move(choice.error()));
    into.stores.main = std::move(*choice);
    return {};
}

result<survives> read_survives(const config_entry& from, const std::string& section) {
    constexpr std::array levels = {survives::process_crash, survives::server_crash, survives::power_loss};
    const std::string text = from.value.list ? "a list" : "\"" + from.value.items.front() + "\"";
    for (const survives each : levels)
        if (text == "\"" + survives_key(each) + "\"") return each;
    return refuse(from.value.where, section + " " + from.key +
                                        ": expected \"process_crash\", \"server_crash\" or \"power_loss\", found " +
                                        text);
}

result<asked_promises> read_promises_of(const config_table& table, std::optional<facet> of) {
    const std::string section = "[" + table.path + "]";
    asked_promises asked{table.where + ": " + section, {}, of};
    auto read = read_section(table, [&](settings& values) {
        values.has("writes_survive");
        asked.what.shared = values.flag("shared", false);
        asked.what.units_of_work = values.flag("units_of_work", false);
        asked.what.joins_transactions = values.flag("joins_transactions", false);
    });
    if (!read) return std::unexpected(std::move(read.error()));
    const auto found = std::ranges::find(table.values, "writes_survive", &config_entry::key);
    if (found != table.values.end()) {
        const auto at_least = read_survives(*found, section);
        if (!at_least) return std::unexpected(at_least.error());
        asked.what.writes_survive = *at_least;
    }
    return asked;
}

// What carries events has no units of work.
result<void> read_promises_of_events(configuration& into, const config_table& table) {
    auto asked = read_promises_of(table, std::nullopt);
    if (!asked) return std::unexpected(std::move(asked.error()));
    for (const config_entry& each : table.values)
        if (each.key == "units_of_work" || each.key == "joins_transactions")
            return refuse(each.value.where, "[promises.events] has no key \"" + each.key + "\"; ask it of the outbox");
    into.event_promises = std::move(*asked);
    return {};
}

result<void> read_promises(configuration& into, const config_table& table) {
    config_table own = table;
    own.tables.clear();
    const auto add = [&](const config_table& from, std::optional<facet> of) -> result<void> {
        auto read = read_promises_of(from, of);
        if (!read) return std::unexpected(std::move(read.error()));
        into.promises.push_back(std::move(*read));
        return {};
    };
    if (!own.values.empty())
        if (auto read = add(own, std::nullopt); !read) return read;
    for (const config_table& each : table.tables) {
        const auto of = facet_named(each.name);
        if (!of && each.name != "events") return no_such_facet(each);
        if (auto read = of ? add(each, of) : read_promises_of_events(into, each); !read) return read;
    }
    return {};
}

result<void> read_jobs(configuration& into, const config_table& table) {
    auto read = read_job_settings(table);
    if (!read) return std::unexpected(std::move(read.error()));
    into.jobs = std::move(*read);
    return {};
}

result<void> read_events(configuration& into, const config_table& table) {
    auto choice = read_required_choice(table);
    if (!choice) return std::unexpected(std::move(choice.error()));
    into.events = std::move(*choice);
    return {};
}

result<void> read_relay(configuration& into, const config_table& table) {
    auto read = read_relay_settings(table);
    if (!read) return std::unexpected(std::move(read.error()));
    into.relay = std::move(*read);
    return {};
}

result<void> read_consumers(configuration& into, const config_table& table) {
    auto read = read_consumer_settings(table);
    if (!read) return std::unexpected(std::move(read.error()));
    into.consumers = std::move(*read);
    return {};
}

result<void> read_application(configuration& into, const config_table& table) {
    auto choice = read_required_choice(table);
    if (!choice) return std::unexpected(std::move(choice.error()));
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

// A section that has tables only, one for each name.
template <class Override>
result<void> read_named(std::vector<Override>& into, const config_table& table,
                        result<Override> (*read_one)(const config_table&)) {
    if (!table.values.empty()) {
        const config_entry& stray = table.values.front();
        return refuse(stray.value.where,
                      "[" + table.name + "] has no key \"" + stray.key + "\"; write it in [" + table.name + ".NAME]");
    }
    for (const config_table& each : table.tables) {
        auto read = read_one(each);
        if (!read) return std::unexpected(std::move(read.error()));
        into.push_back(std::move(*read));
    }
    return {};
}

result<void> read_table(configuration& into, const config_table& table) {
    if (table.name == "runtime") return read_runtime(into, table);
    if (table.name == "store") return read_store(into, table);
    if (table.name == "promises") return read_promises(into, table);
    if (table.name == "jobs") return read_jobs(into, table);
    if (table.name == "events") return read_events(into, table);
    if (table.name == "relay") return read_relay(into, table);
    if (table.name == "consumers") return read_consumers(into, table);
    if (table.name == "plugins") return read_plugins(into, table);
    if (table.name == "log") return read_log(into, table);
    if (table.name == "application") return read_application(into, table);
    if (table.name == "policies") return read_named(into.policies, table, &read_policy_override);
    if (table.name == "schedules") return read_named(into.schedules, table, &read_schedule_override);
    return refuse(table.where, "there is no section [" + table.name + "]" + did_you_mean(table.name, sections));
}

} // namespace

std::string survives_key(survives s) {
    std::string key(to_text(s));
    std::ranges::replace(key, ' ', '_');
    return key;
}

settings plugin_choice::to_settings(const fs::path& folder) const {
    settings values(section, where, folder);
    for (const config_entry& each : own) values.set(each.key, each.value);
    return values;
}

bool plugin_choice::says_the_same_as(const plugin_choice& other) const {
    return plugin == other.plugin && std::ranges::is_permutation(own, other.own, same_text);
}

bool same_choice(const std::optional<plugin_choice>& a, const std::optional<plugin_choice>& b) {
    return a.has_value() == b.has_value() && (!a || a->says_the_same_as(*b));
}

bool store_choices::says_the_same_as(const store_choices& other) const {
    return same_choice(main, other.main) && std::ranges::equal(facets, other.facets, same_choice);
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
