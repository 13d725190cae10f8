// Jobs as text: rows for people, JSON for programs. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/job_store.hpp>

namespace holdfast::cli {

using row = std::vector<std::string>;

// "3 min ago", "in 5 h", "now".
std::string relative(store_time when, store_time now);
// Without line breaks and control characters, at most `longest` characters.
std::string one_line(std::string_view text, std::size_t longest = 100);

// The columns of a list depend on the filter: what is the same in every row is left out.
row job_heading(const job_filter& filter);
row to_row(const job_view& job, const job_filter& filter, store_time now);
// All that is known about one job, its history as a table.
std::string to_text(const job_view& job, store_time now);
std::string to_text(job_absence why);

std::string to_json(const job_view& job);
std::string to_json_with_history(const job_view& job);

} // namespace holdfast::cli
