// `holdfast queues list|pause|resume`.
#include <algorithm>
#include <iostream>
#include <map>

#include <holdfast/nearest.hpp>

#include "commands.hpp"
#include "jobs_store.hpp"
#include "jobs_text.hpp"
#include "json.hpp"
#include "table.hpp"

namespace holdfast::cli {

namespace {

struct queue_numbers {
    bool paused = false;
    std::uint64_t pending = 0;
    std::uint64_t processing = 0;
    std::uint64_t later = 0; // scheduled, or waiting for a retry
    std::uint64_t dead = 0;
};

std::map<std::string, queue_numbers> all_queues(jobs_store& in) {
    std::map<std::string, queue_numbers> all;
    for (const queue_view& each : in.get(in.jobs().queues())) all[each.name].paused = each.paused;
    for (const job_count& each : in.get(in.jobs().counts())) {
        queue_numbers& numbers = all[each.queue];
        switch (each.state) {
        case job_state::pending: numbers.pending += each.count; break;
        case job_state::processing: numbers.processing += each.count; break;
        case job_state::scheduled:
        case job_state::waiting_retry: numbers.later += each.count; break;
        case job_state::dead_letter: numbers.dead += each.count; break;
        default: break;
        }
    }
    return all;
}

int list(const arguments& given) {
    jobs_store in(given);
    const auto all = all_queues(in);
    if (given.has("--json")) {
        json_array queues;
        for (const auto& [name, numbers] : all)
            queues.add(json_object()
                           .add_text("name", name)
                           .add("paused", numbers.paused ? "true" : "false")
                           .add("pending", std::to_string(numbers.pending))
                           .add("processing", std::to_string(numbers.processing))
                           .add("later", std::to_string(numbers.later))
                           .add("dead_letter", std::to_string(numbers.dead))
                           .text());
        std::cout << json_object().add("queues", queues.text()).text() << "\n";
        return 0;
    }
    std::vector<row> rows = {{"QUEUE", "STATE", "PENDING", "PROCESSING", "LATER", "DEAD LETTERS"}};
    for (const auto& [name, numbers] : all)
        rows.push_back({one_line(name, 40), numbers.paused ? "paused" : "open", std::to_string(numbers.pending),
                        std::to_string(numbers.processing), std::to_string(numbers.later),
                        std::to_string(numbers.dead)});
    std::cout << (all.empty() ? "no queues\n" : to_table(rows));
    return 0;
}

// A queue that nobody has used may be paused all the same, but it may also be a slip of the finger.
void warn_of_unknown(jobs_store& in, const std::string& name) {
    std::vector<std::string> known;
    for (const auto& [each, numbers] : all_queues(in)) known.push_back(each);
    if (std::ranges::find(known, name) != known.end()) return;
    const std::vector<std::string_view> names(known.begin(), known.end());
    std::cerr << "warning: the store knows no queue \"" << one_line(name) << "\" yet"
              << one_line(did_you_mean(name, names)) << "\n";
}

int set_paused(const arguments& given, bool paused) {
    jobs_store in(given);
    json_array names;
    for (const std::string& each : given.operands()) {
        warn_of_unknown(in, each);
        in.get(paused ? in.jobs().pause(each) : in.jobs().resume(each));
        names.add(json_text(each));
        if (!given.has("--json")) std::cout << (paused ? "paused: " : "resumed: ") << one_line(each) << "\n";
    }
    if (given.has("--json")) std::cout << json_object().add(paused ? "paused" : "resumed", names.text()).text() << "\n";
    return 0;
}

} // namespace

std::vector<command> queues_commands() {
    return {
        {"queues list",
         "",
         "Lists the queues, paused or open, and what is in them.",
         {config_option, json_option},
         &list},
        {"queues pause",
         "NAME...",
         "Lets no job of these queues begin, on any worker.",
         {config_option, json_option},
         [](const arguments& given) { return set_paused(given, true); }},
        {"queues resume",
         "NAME...",
         "Lets the jobs of these queues begin again.",
         {config_option, json_option},
         [](const arguments& given) { return set_paused(given, false); }},
    };
}

} // namespace holdfast::cli
