// Rows as the values that they stand for.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/job_machine.hpp>
#include <holdfast/payload.hpp>

#include "session.hpp"

namespace holdfast::sqlite {

// "3:key5:value", for each; nothing for none.
std::string encode(const headers& extra);
headers decode_headers(std::string_view text);

// A job as the state machine sees it, with what only the file knows about it.
struct stored_job {
    std::int64_t seq = 0;
    job_machine::record r;
    bool has_children = false;
    int runs = 0; // attempts in the history table
    bool large = false;
    std::optional<store_time> expires{};
};

// The columns HOLDFAST_MACHINE of sql.cpp. The history is what the row itself tells: a running attempt, or
// the successful one of job_done_keep.
stored_job read_machine_row(use& row);
// The columns HOLDFAST_VIEW. The state is the one that a reader sees at `now`.
job_view read_view_row(use& row, store_time now, std::int64_t& seq, std::optional<store_time>& expires);

} // namespace holdfast::sqlite
