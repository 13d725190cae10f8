// What `holdfast verify` does in processes of its own: the rival of a store, and the same cases where the clock is wrong.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/conformance.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/lease.hpp>

#include "arguments.hpp"

namespace holdfast::cli {

// The words that run this command with the same plugin, settings and runtime once more, and `more`.
std::vector<std::string> verify_again(const arguments& given, std::vector<std::string> more);

// How wrong the clock is to be, from "+1h"; throws usage_error. Nothing when it was not given.
std::optional<duration> read_clock(const arguments& given);

// Starts this program again, with the same arguments, where the clock is wrong by so much. Returns where it is so already;
// throws failed where it cannot be.
void shift_clock(duration by);

// Whether a store whose clock says `present` goes by this process's clock, which is wrong by so much.
bool goes_by_this_clock(store_time present, duration wrong_by);

// All cases again in a process whose clock is wrong by so much. Each comes back in a group of its own, "clock +1h".
conformance::summary verify_with_clock(const arguments& given, const std::string& wrong_by,
                                       const std::function<void(const conformance::case_result&)>& report);

// What that process prints: a line for each case, for the one that started it.
class line_report {
public:
    void add(const conformance::case_result& r);
    static void skipped(const std::string& why);
};

} // namespace holdfast::cli
