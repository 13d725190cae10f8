// A configuration file as sections of text values, each with the line it was written on.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/settings.hpp>

namespace holdfast::detail {

struct config_entry {
    std::string key;
    settings::value value;
};

// Wherever it was written.
bool same_text(const config_entry& a, const config_entry& b);

// A table. Values and tables are in the order of their lines.
struct config_table {
    std::string name;  // "invoice-email"
    std::string path;  // "policies.invoice-email"
    std::string where; // "desk.toml:7"
    std::vector<config_entry> values;
    std::vector<config_table> tables;
};

// The whole document as one nameless table. `name` stands for the file in messages.
result<config_table> parse_toml(std::string_view text, const std::string& name);

// The values of a table and of those in it, under dotted keys.
std::vector<config_entry> flatten(const config_table& table);

} // namespace holdfast::detail
