// What the commands that change things say: about each thing named, or about all that would be changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/identifier.hpp>

#include "arguments.hpp"
#include "json.hpp"

namespace holdfast::cli {

struct change_answer {
    identifier id;
    bool done;
    std::string text; // with the reason if nothing was done
};

// One line for each, or {"jobs":[…]} where `things` is "jobs". Gives the exit code: 1 when one was left as it is.
int report(const std::vector<change_answer>& answers, std::string_view things, bool as_json);

// Without --yes: "error: 42 jobs would be requeued; nothing was done, …", and what is done so far where --json is given. Gives
// the exit code.
int needs_yes(const arguments& given, const std::string& what, const json_object& so_far);
// {"matching":42,"requeued":0}
json_object none_of(std::uint64_t matching, std::string_view done);

inline const option yes_option{"--yes", "", "do it; without this, a change to many only says what it would do"};

} // namespace holdfast::cli
