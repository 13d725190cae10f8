// Dead letters and subscriptions as text: rows for people, JSON for programs. Pure.
#pragma once

#include <string>

#include <holdfast/event_transport.hpp>

#include "text.hpp"

namespace holdfast::cli {

// The columns of a list depend on the filter: what is the same in every row is left out.
row dead_letter_heading(const dead_message_filter& filter);
row to_row(const dead_message& dead, const dead_message_filter& filter, store_time now);
// All that is known about one.
std::string to_text(const dead_message& dead, store_time now);

std::string to_json(const dead_message& dead);
// With headers, stack and body.
std::string to_whole_json(const dead_message& dead);

std::string to_table(const std::vector<subscription_view>& all);
std::string to_json(const subscription_view& each);

} // namespace holdfast::cli
