// `holdfast outbox list|retry|discard`: events that could not be handed over, and were set aside.
#include <iostream>

#include <holdfast/outbox_store.hpp>

#include "commands.hpp"
#include "json.hpp"
#include "opened_host.hpp"
#include "table.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

class outbox_desk : public opened_host {
public:
    explicit outbox_desk(const arguments& given) : opened_host(given) {
        store& kept = opened().store_of(facet::outbox);
        if (!kept.capabilities().shared)
            throw failed(
                {errc::unsupported,
                 "the " + std::string(kept.name()) +
                     " store keeps its outbox inside its own process, where this command cannot see it; it works on "
                     "stores that processes share: sqlite, postgres, redis",
                 std::nullopt});
    }
    outbox_store& outbox() { return opened().outbox(); }

    // Lowest position first; 0 = all.
    std::vector<message_view> set_aside(int limit) {
        constexpr int page_size = 500;
        std::vector<message_view> all;
        for (std::uint64_t after = 0;;) {
            const int size = limit == 0 ? page_size : std::min(limit - static_cast<int>(all.size()), page_size);
            auto page = get(outbox().set_aside(size, after));
            const bool last = page.size() < static_cast<std::size_t>(size);
            if (!page.empty()) after = page.back().position;
            for (message_view& each : page) all.push_back(std::move(each));
            if (last || (limit != 0 && all.size() >= static_cast<std::size_t>(limit))) return all;
        }
    }
};

std::string to_json(const message_view& each) {
    return json_object()
        .add_text("id", to_text(each.message.id))
        .add_text("event", each.message.topic)
        .add_text("key", each.message.key)
        .add("position", std::to_string(each.position))
        .add("attempts", std::to_string(each.attempts))
        .add_text("error", each.last_error)
        .add_text("body", each.message.what.body)
        .text();
}

int list(const arguments& given) {
    const int limit = count_of(given, "--limit", default_limit);
    outbox_desk at(given);
    const auto aside = at.set_aside(limit);
    const std::uint64_t unsent = at.get(at.outbox().unsent());
    if (given.has("--json")) {
        json_array all;
        for (const message_view& each : aside) all.add(to_json(each));
        std::cout << json_object().add("unsent", std::to_string(unsent)).add("set_aside", all.text()).text() << "\n";
        return 0;
    }
    std::cout << "unsent: " << unsent << "\n";
    std::vector<row> rows = {{"SET ASIDE", "EVENT", "KEY", "ATTEMPTS", "WHY"}};
    for (const message_view& each : aside)
        rows.push_back({to_text(each.message.id), one_line(each.message.topic, 40),
                        each.message.key.empty() ? "-" : one_line(each.message.key, 30), std::to_string(each.attempts),
                        one_line(each.last_error)});
    if (!aside.empty()) std::cout << to_table(rows);
    if (limit != 0 && aside.size() == static_cast<std::size_t>(limit))
        std::cout << "there may be more: --limit says how many to show, 0 shows all\n";
    return 0;
}

using verb = task<result<int>> (outbox_store::*)(std::vector<identifier> which);

int change(const arguments& given, verb what, std::string_view done) {
    const auto ids = ids_of(given.operands(), "an event", "holdfast outbox list");
    outbox_desk at(given);
    const int found = at.get((at.outbox().*what)(ids));
    const bool all = static_cast<std::size_t>(found) == ids.size();
    if (given.has("--json")) std::cout << json_object().add("done", std::to_string(found)).text() << "\n";
    else if (all) std::cout << done << ": " << found << "\n";
    else
        std::cerr << "error: " << done << ": " << found << " of " << ids.size()
                  << "; the others are not among those that were set aside\n";
    return all ? 0 : 1;
}

} // namespace

std::vector<command> outbox_commands() {
    return {
        {"outbox list",
         "",
         "Counts the events that wait to be handed over, and lists those that were set aside.",
         {config_option, limit_option, json_option},
         &list},
        {"outbox retry",
         "ID...",
         "Puts events that were set aside back in line.",
         {config_option, json_option},
         [](const arguments& given) { return change(given, &outbox_store::send_again, "back in line"); }},
        {"outbox discard",
         "ID...",
         "Forgets events that were set aside.",
         {config_option, json_option},
         [](const arguments& given) { return change(given, &outbox_store::discard, "discarded"); }},
    };
}

} // namespace holdfast::cli
