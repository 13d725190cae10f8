#include "changes.hpp"

#include <algorithm>
#include <iostream>

namespace holdfast::cli {

int report(const std::vector<change_answer>& answers, std::string_view things, bool as_json) {
    json_array all;
    for (const change_answer& each : answers) {
        if (as_json)
            all.add(json_object()
                        .add_text("id", to_text(each.id))
                        .add("done", each.done ? "true" : "false")
                        .add_text("answer", each.text)
                        .text());
        else if (answers.size() > 1) std::cout << to_text(each.id) << "  " << each.text << "\n";
        else (each.done ? std::cout : std::cerr) << (each.done ? "" : "error: ") << each.text << "\n";
    }
    if (as_json) std::cout << json_object().add(things, all.text()).text() << "\n";
    return std::ranges::all_of(answers, &change_answer::done) ? 0 : 1;
}

json_object none_of(std::uint64_t matching, std::string_view done) {
    return json_object().add("matching", std::to_string(matching)).add(done, "0");
}

int needs_yes(const arguments& given, const std::string& what, const json_object& so_far) {
    if (given.has("--json")) std::cout << so_far.text() << "\n";
    std::cerr << "error: " << what << "; nothing was done, add --yes to do it\n";
    return 1;
}

} // namespace holdfast::cli
