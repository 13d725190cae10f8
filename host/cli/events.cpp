// `holdfast events list|show|subscriptions`: looking at dead letters and at who consumes.
#include <iostream>

#include "commands.hpp"
#include "events_change.hpp"
#include "events_desk.hpp"
#include "events_text.hpp"
#include "json.hpp"
#include "table.hpp"

namespace holdfast::cli {

namespace {

void print_json(events_desk& at, const dead_message_filter& filter, int limit) {
    bool first = true;
    std::cout << "{\"dead_letters\":[";
    const bool more = at.for_each_page(filter, limit, [&](const std::vector<dead_message>& page) {
        for (const dead_message& each : page)
            std::cout << (std::exchange(first, false) ? "\n" : ",\n") << to_json(each);
    });
    std::cout << "\n],\"more\":" << (more ? "true" : "false") << "}\n";
}

int list(const arguments& given) {
    const dead_message_filter filter = filter_of_events(given);
    const int limit = count_of(given, "--limit", default_limit);
    events_desk at(given);
    if (filter.subscription) at.must_know(*filter.subscription);
    if (given.has("--json")) {
        print_json(at, filter, limit);
        return 0;
    }
    const store_time now = at.now();
    bool first = true;
    const bool more = at.for_each_page(filter, limit, [&](const std::vector<dead_message>& page) {
        std::vector<row> rows;
        if (std::exchange(first, false)) rows.push_back(dead_letter_heading(filter));
        for (const dead_message& each : page) rows.push_back(to_row(each, filter, now));
        std::cout << (page.empty() ? "no dead letters\n" : to_table(rows));
    });
    if (more) std::cout << "there are more: --limit says how many to show, 0 shows all\n";
    return 0;
}

int show(const arguments& given) {
    const identifier id = event_ids_of(given).front();
    events_desk at(given);
    const auto found = at.dead_letters_of(id, given.value("--subscription"));
    if (found.empty()) {
        std::cerr << "error: event " << to_text(id) << " is no dead letter\n";
        return 1;
    }
    if (given.has("--json")) {
        json_array all;
        for (const dead_message& each : found) all.add(to_whole_json(each));
        std::cout << json_object().add("dead_letters", all.text()).text() << "\n";
        return 0;
    }
    const store_time now = at.now();
    for (const dead_message& each : found) std::cout << (&each == found.data() ? "" : "\n") << to_text(each, now);
    return 0;
}

int subscriptions(const arguments& given) {
    events_desk at(given);
    const auto all = at.get(at.transport().subscriptions());
    if (!given.has("--json")) {
        std::cout << to_table(all);
        return 0;
    }
    json_array views;
    for (const subscription_view& each : all) views.add(to_json(each));
    std::cout << json_object().add("subscriptions", views.text()).text() << "\n";
    return 0;
}

} // namespace

std::vector<command> events_commands() {
    std::vector<command> all = {
        {"events list",
         "",
         "Lists the events that consumers gave up on, the latest first.",
         {config_option, subscription_option, event_option, limit_option, json_option},
         &list},
        {"events show",
         "ID",
         "Shows a dead letter: error, stack, attempts, headers and body, for each subscription that has it.",
         {config_option, subscription_option, json_option},
         &show},
        {"events subscriptions",
         "",
         "Lists the subscriptions, what waits for them and what they have done.",
         {config_option, json_option},
         &subscriptions},
    };
    for (command& each : events_change_commands()) all.push_back(std::move(each));
    return all;
}

} // namespace holdfast::cli
