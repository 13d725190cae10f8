// Exception policies in words: which rule takes an error, what it gets, what that may come to.
#pragma once

#include <string>
#include <vector>

#include <holdfast/exception_table.hpp>

namespace holdfast {

// The most that a rule can make of one message or job, the total of attempts observed.
struct exception_worst_case {
    long calls = 1;      // of the handler
    duration waits{};    // between them, all together; jitter only shortens them
    duration slot_for{}; // of those, the longest within one delivery, which keeps its slot
    bool cut = false;    // the rule asks for more calls than the total allows
};
exception_worst_case worst_case(const exception_rule& rule, int max_total_attempts);

// "on<smtp_error>(predicate)", "on(generic: Connection reset by peer)", "default_()"
std::string describe(const exception_rule& rule);

// Which rule takes this failure, and its schedule, in a few lines:
//
//   smtp_error: 451 try again later
//   is taken by on<smtp_error>(predicate) of the consumer:
//     retry 3 times, after 200ms, 400ms, 800ms with jitter
//     redeliver 3 times, after 5m, 15m, 30m with jitter; each with 3 retries of its own
//     then dead letter
//     at most 16 calls, and 50m of waiting
std::string explain(const exception_table& table, const failure& f);

// All rules in the same way, in the order of their scopes and declaration.
std::string explain(const exception_table& table);

// Rules that are valid but probably not meant, one sentence each.
std::vector<std::string> lint(const exception_table& table);

} // namespace holdfast
