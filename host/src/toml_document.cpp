#include "toml_document.hpp"

#include <algorithm>
#include <charconv>

#include <toml++/toml.h>

#include "environment.hpp"

namespace holdfast::detail {

namespace {

std::string at(const std::string& name, toml::source_index line) {
    return name + ":" + std::to_string(line);
}

result<std::string> to_scalar(const toml::node& node) {
    if (const auto* text = node.as_string()) return fill_in(text->get(), environment_variable);
    if (const auto* number = node.as_integer()) return std::to_string(number->get());
    if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
    if (const auto* number = node.as_floating_point()) {
        char text[64];
        const auto [end, problem] = std::to_chars(text, text + sizeof(text), number->get());
        if (problem == std::errc{}) return std::string(text, end);
    }
    return fail(errc::configuration, "expected text, a number, true, false or a list of these");
}

result<settings::value> to_value(const toml::node& node, std::string where) {
    if (const toml::array* list = node.as_array()) {
        settings::value v{{}, std::move(where), true};
        for (const toml::node& each : *list) {
            auto item = to_scalar(each);
            if (!item) return std::unexpected(std::move(item.error()));
            v.items.push_back(std::move(*item));
        }
        return v;
    }
    auto item = to_scalar(node);
    if (!item) return std::unexpected(std::move(item.error()));
    return settings::value{{std::move(*item)}, std::move(where), false};
}

result<void> fill(config_table& into, const toml::table& from, const std::string& name) {
    std::vector<std::pair<const toml::key*, const toml::node*>> in_order;
    for (const auto& [key, node] : from) in_order.emplace_back(&key, &node);
    std::ranges::sort(in_order, {}, [](const auto& each) {
        return std::pair(each.first->source().begin.line, each.first->source().begin.column);
    });
    for (const auto& [key, node] : in_order) {
        const auto line = key->source().begin.line;
        if (const toml::table* table = node->as_table()) {
            config_table child;
            child.name = std::string(key->str());
            child.path = into.path.empty() ? child.name : into.path + "." + child.name;
            child.where = at(name, line);
            if (auto filled = fill(child, *table, name); !filled) return filled;
            into.tables.push_back(std::move(child));
            continue;
        }
        auto value = to_value(*node, at(name, line));
        if (!value)
            return fail(errc::configuration, at(name, line) + ": " + (into.path.empty() ? "" : "[" + into.path + "] ") +
                                                 std::string(key->str()) + ": " + value.error().message);
        into.values.push_back({std::string(key->str()), std::move(*value)});
    }
    return {};
}

void flatten_into(std::vector<config_entry>& all, const config_table& table, const std::string& prefix) {
    for (const config_entry& each : table.values) all.push_back({prefix + each.key, each.value});
    for (const config_table& each : table.tables) flatten_into(all, each, prefix + each.name + ".");
}

} // namespace

result<config_table> parse_toml(std::string_view text, const std::string& name) {
    try {
        const toml::table document = toml::parse(text, name);
        config_table root;
        root.where = at(name, 1);
        if (auto filled = fill(root, document, name); !filled) return std::unexpected(std::move(filled.error()));
        return root;
    } catch (const toml::parse_error& e) {
        return fail(errc::configuration,
                    at(name, e.source().begin.line) + ": not valid TOML: " + std::string(e.description()));
    }
}

bool same_text(const config_entry& a, const config_entry& b) {
    return a.key == b.key && a.value.items == b.value.items && a.value.list == b.value.list;
}

std::vector<config_entry> flatten(const config_table& table) {
    std::vector<config_entry> all;
    flatten_into(all, table, "");
    return all;
}

} // namespace holdfast::detail
