// `holdfast events redeliver|discard|replay|unsubscribe`: changing what consumers get. Exit code 1 when one of those named
// was left as it is.
#include "events_change.hpp"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>

#include <holdfast/duration.hpp>
#include <holdfast/timestamp.hpp>

#include "changes.hpp"
#include "events_desk.hpp"
#include "json.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

// What is done to dead letters, named or all that match.
struct change {
    std::string_view done; // "sent again"
    std::string_view key;  // for programs
    task<result<int>> (event_transport::*how)(std::string subscription, std::vector<identifier> which);
};

constexpr change redelivering{"sent again", "redelivered", &event_transport::send_again};
constexpr change discarding{"discarded", "discarded", &event_transport::discard};

std::string letters(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " dead letter" : " dead letters");
}

std::uint64_t count_matching(events_desk& at, const dead_message_filter& filter) {
    std::uint64_t count = 0;
    at.for_each_page(filter, 0, [&](const std::vector<dead_message>& page) { count += page.size(); });
    return count;
}

// Whatever dies again meanwhile is looked at once: what is there now is collected first.
std::uint64_t apply(events_desk& at, const change& what, const dead_message_filter& filter) {
    std::map<std::string, std::vector<identifier>> by_subscription;
    at.for_each_page(filter, 0, [&](const std::vector<dead_message>& page) {
        for (const dead_message& each : page) by_subscription[each.subscription].push_back(each.message.id);
    });
    constexpr std::size_t batch = 500;
    std::uint64_t done = 0;
    for (const auto& [subscription, ids] : by_subscription)
        for (std::size_t from = 0; from < ids.size(); from += batch) {
            const auto first = ids.begin() + static_cast<std::ptrdiff_t>(from);
            const auto last = ids.begin() + static_cast<std::ptrdiff_t>(std::min(from + batch, ids.size()));
            done += static_cast<std::uint64_t>(at.get((at.transport().*what.how)(subscription, {first, last})));
        }
    return done;
}

int all_matching(const change& what, const arguments& given) {
    const dead_message_filter filter = filter_of_events(given);
    events_desk at(given);
    if (filter.subscription) at.must_know(*filter.subscription);
    if (!given.has("--yes")) {
        const std::uint64_t count = count_matching(at, filter);
        return needs_yes(given, letters(count) + " would be " + std::string(what.done), none_of(count, what.key));
    }
    const std::uint64_t done = apply(at, what, filter);
    if (given.has("--json")) std::cout << json_object().add(what.key, std::to_string(done)).text() << "\n";
    else std::cout << what.done << ": " << letters(done) << "\n";
    return 0;
}

change_answer apply_to(events_desk& at, const change& what, const identifier& id,
                       const std::optional<std::string>& subscription) {
    std::string whose;
    for (const dead_message& each : at.dead_letters_of(id, subscription))
        if (at.get((at.transport().*what.how)(each.subscription, {id})) > 0)
            whose += (whose.empty() ? "" : ", ") + one_line(each.subscription);
    if (whose.empty()) return {id, false, "event " + to_text(id) + " is no dead letter"};
    return {id, true, std::string(what.done) + ": " + whose};
}

int run(const change& what, const arguments& given) {
    if (given.has("--all")) {
        if (!given.operands().empty()) throw usage_error("give either ids or --all, not both");
        return all_matching(what, given);
    }
    if (given.has("--event")) throw usage_error("--event needs --all");
    if (given.operands().empty()) throw usage_error("say which dead letters: ids, or --all");
    const auto ids = event_ids_of(given);
    events_desk at(given);
    const auto subscription = given.value("--subscription");
    if (subscription) at.must_know(*subscription);
    std::vector<change_answer> answers;
    for (const identifier& id : ids) answers.push_back(apply_to(at, what, id, subscription));
    return report(answers, "events", given.has("--json"));
}

// "start", a position, a time, or how long ago.
replay_point point_of(const std::string& text, store_time now) {
    if (text == "start") return {};
    std::uint64_t position = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), position);
    if (problem == std::errc{} && end == text.data() + text.size()) return {.position = position};
    if (const auto time = parse_timestamp<store_time>(text)) return {.time = time};
    if (const auto ago = parse_duration(text))
        return {.time = now - std::chrono::duration_cast<store_time::duration>(*ago)};
    throw usage_error("--from is \"" + text +
                      "\"; expected a position (1042), a time (2026-11-16T06:00:00Z), how long ago (2h), or start");
}

int replay(const arguments& given) {
    const std::string& name = given.operands().front();
    const auto from = given.value("--from");
    if (!from) throw usage_error("say from where: --from POSITION, --from TIME, --from 2h, --from start");
    static_cast<void>(point_of(*from, {})); // a slip is told before anything is opened
    events_desk at(given);
    at.must_know(name);
    if (!given.has("--yes"))
        return needs_yes(given, "\"" + one_line(name) + "\" would get again all that is kept from " + *from + " on",
                         json_object().add("replayed", "0"));
    const std::uint64_t count = at.get(at.transport().replay(name, point_of(*from, at.now())));
    if (given.has("--json")) std::cout << json_object().add("replayed", std::to_string(count)).text() << "\n";
    else std::cout << "replayed: " << count << (count == 1 ? " event" : " events") << " for " << one_line(name) << "\n";
    return 0;
}

int unsubscribe(const arguments& given) {
    const std::string& name = given.operands().front();
    events_desk at(given);
    at.must_know(name);
    if (!given.has("--yes"))
        return needs_yes(given,
                         "the subscription \"" + one_line(name) + "\" would be forgotten, with what waits for it",
                         json_object().add("forgotten", "false"));
    const bool gone = at.get(at.transport().unsubscribe(name));
    if (given.has("--json")) std::cout << json_object().add("forgotten", gone ? "true" : "false").text() << "\n";
    else std::cout << "forgotten: " << one_line(name) << "\n";
    return gone ? 0 : 1;
}

std::vector<option> change_options() {
    return {config_option, subscription_option, {"--all", "", "all dead letters that match --subscription and --event"},
            event_option,  yes_option,          json_option};
}

} // namespace

std::vector<command> events_change_commands() {
    return {
        {"events redeliver", "[ID]...", "Gives dead letters to their consumers again, now.", change_options(),
         [](const arguments& given) { return run(redelivering, given); }},
        {"events discard", "[ID]...", "Forgets dead letters.", change_options(),
         [](const arguments& given) { return run(discarding, given); }},
        {"events replay",
         "SUBSCRIPTION",
         "Gives a subscription again what is kept, from a point on.",
         {config_option,
          {"--from", "POINT", "a position, a time such as 2026-11-16T06:00:00Z, how long ago (2h), or start"},
          yes_option,
          json_option},
         &replay},
        {"events unsubscribe",
         "SUBSCRIPTION",
         "Forgets a subscription that nobody uses any more, with what waits for it.",
         {config_option, yes_option, json_option},
         &unsubscribe},
    };
}

} // namespace holdfast::cli
