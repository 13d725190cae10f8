// What the tables of several commands have in common. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/store.hpp>

namespace holdfast::cli {

using row = std::vector<std::string>;

// "3 min ago", "in 5 h", "now".
std::string relative(store_time when, store_time now);
// The time itself, and that.
std::string absolute(store_time when, store_time now);
// Without line breaks and control characters, at most `longest` characters.
std::string one_line(std::string_view text, std::size_t longest = 100);
// "smtp_error: 550 mailbox unavailable".
std::string why(std::string_view type, std::string_view message);
// The body where it is text and not too long, else what it is.
std::string body_text(const payload& what);

} // namespace holdfast::cli
