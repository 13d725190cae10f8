// Jobs as text: rows for people, JSON for programs. Pure.
#pragma once

#include <string>

#include <holdfast/job_store.hpp>

#include "text.hpp"

namespace holdfast::cli {

// The columns of a list depend on the filter: what is the same in every row is left out.
row job_heading(const job_filter& filter);
row to_row(const job_view& job, const job_filter& filter, store_time now);
// All that is known about one job, its history as a table.
std::string to_text(const job_view& job, store_time now);
std::string to_text(job_absence why);

std::string to_json(const job_view& job);
std::string to_json_with_history(const job_view& job);

} // namespace holdfast::cli
