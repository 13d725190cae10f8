#include "events_text.hpp"

#include <holdfast/timestamp.hpp>

#include "json.hpp"
#include "table.hpp"

namespace holdfast::cli {

namespace {

std::string counts(const dead_message& dead) {
    return std::to_string(dead.calls) + " calls, " + std::to_string(dead.redeliveries) + " redeliveries, " +
           std::to_string(dead.crashes) + " crashes, generation " + std::to_string(dead.generation);
}

json_object basics(const dead_message& dead) {
    return json_object()
        .add_text("id", holdfast::to_text(dead.message.id))
        .add_text("event", dead.message.topic)
        .add_text("subscription", dead.subscription)
        .add_text("key", dead.message.key)
        .add("position", std::to_string(dead.position))
        .add_text("died", holdfast::to_text(dead.died))
        .add("calls", std::to_string(dead.calls))
        .add("redeliveries", std::to_string(dead.redeliveries))
        .add("crashes", std::to_string(dead.crashes))
        .add("generation", std::to_string(dead.generation));
}

json_object error_of(const dead_message& dead) {
    return json_object().add_text("type", dead.error.type).add_text("message", dead.error.message);
}

} // namespace

row dead_letter_heading(const dead_message_filter& filter) {
    row cells = {"ID"};
    if (!filter.topic) cells.emplace_back("EVENT");
    if (!filter.subscription) cells.emplace_back("SUBSCRIPTION");
    for (const char* each : {"KEY", "CALLS", "DEAD SINCE", "WHY"}) cells.emplace_back(each);
    return cells;
}

row to_row(const dead_message& dead, const dead_message_filter& filter, store_time now) {
    row cells = {holdfast::to_text(dead.message.id)};
    if (!filter.topic) cells.push_back(one_line(dead.message.topic, 40));
    if (!filter.subscription) cells.push_back(one_line(dead.subscription, 40));
    cells.push_back(dead.message.key.empty() ? "-" : one_line(dead.message.key, 30));
    cells.push_back(std::to_string(dead.calls));
    cells.push_back(relative(dead.died, now));
    cells.push_back(one_line(why(dead.error.type, dead.error.message)));
    return cells;
}

std::string to_text(const dead_message& dead, store_time now) {
    const payload& what = dead.message.what;
    std::vector<row> rows = {
        {"id", holdfast::to_text(dead.message.id)},
        {"event", one_line(dead.message.topic) + ", version " + std::to_string(what.version)},
        {"subscription", one_line(dead.subscription)},
        {"key", dead.message.key.empty() ? "none" : one_line(dead.message.key)},
        {"position", std::to_string(dead.position)},
        {"died", absolute(dead.died, now)},
        {"attempts", counts(dead)},
        {"error", one_line(why(dead.error.type, dead.error.message), 1000)},
    };
    for (const auto& [name, value] : dead.message.extra) rows.push_back({"header " + one_line(name), one_line(value)});
    rows.push_back({"body", body_text(what)});
    std::string text = to_table(rows);
    if (dead.error.stack.empty()) return text;
    text += "stack\n";
    for (std::size_t at = 0; at < dead.error.stack.size();) {
        const std::size_t end = std::min(dead.error.stack.find('\n', at), dead.error.stack.size());
        text += "  " + one_line(dead.error.stack.substr(at, end - at), 300) + "\n";
        at = end + 1;
    }
    return text;
}

std::string to_json(const dead_message& dead) {
    return basics(dead).add("error", error_of(dead).text()).text();
}

std::string to_whole_json(const dead_message& dead) {
    json_object extra;
    for (const auto& [name, value] : dead.message.extra) extra.add_text(name, value);
    return basics(dead)
        .add("error", error_of(dead).add_text("stack", dead.error.stack).text())
        .add("headers", extra.text())
        .add_text("type", dead.message.what.type)
        .add("version", std::to_string(dead.message.what.version))
        .add_text("content_type", dead.message.what.content_type)
        .add_text("body", dead.message.what.body)
        .text();
}

std::string to_table(const std::vector<subscription_view>& all) {
    std::vector<row> rows = {{"SUBSCRIPTION", "WAITING", "LEASED", "DEAD", "ACKNOWLEDGED", "DISCARDED", "EVENTS"}};
    for (const subscription_view& each : all) {
        std::string topics;
        for (const std::string& topic : each.topics) topics += (topics.empty() ? "" : ", ") + topic;
        rows.push_back({one_line(each.name, 40), std::to_string(each.waiting), std::to_string(each.leased),
                        std::to_string(each.dead), std::to_string(each.acknowledged), std::to_string(each.discarded),
                        one_line(topics, 120)});
    }
    return all.empty() ? "no subscriptions\n" : to_table(rows);
}

std::string to_json(const subscription_view& each) {
    json_array topics;
    for (const std::string& topic : each.topics) topics.add(json_text(topic));
    return json_object()
        .add_text("name", each.name)
        .add("events", topics.text())
        .add("waiting", std::to_string(each.waiting))
        .add("leased", std::to_string(each.leased))
        .add("dead", std::to_string(each.dead))
        .add("acknowledged", std::to_string(each.acknowledged))
        .add("discarded", std::to_string(each.discarded))
        .text();
}

} // namespace holdfast::cli
