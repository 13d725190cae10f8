#include "events_desk.hpp"

#include <algorithm>

#include <holdfast/nearest.hpp>

namespace holdfast::cli {

events_desk::events_desk(const arguments& given) : opened_host(given) {
    if (!transport().capabilities().shared)
        throw failed(
            {errc::unsupported,
             "the " + std::string(transport().name()) +
                 " events plugin keeps its messages inside its own process, where this command cannot see them",
             std::nullopt});
}

std::vector<std::string> events_desk::subscription_names() {
    std::vector<std::string> names;
    for (subscription_view& each : get(transport().subscriptions())) names.push_back(std::move(each.name));
    return names;
}

void events_desk::must_know(const std::string& subscription) {
    const std::vector<std::string> known = subscription_names();
    if (std::ranges::find(known, subscription) != known.end()) return;
    throw failed({errc::not_found,
                  "there is no subscription \"" + subscription + "\"" + did_you_mean(subscription, known),
                  std::nullopt});
}

std::vector<dead_message> events_desk::dead_letters_of(const identifier& id,
                                                       const std::optional<std::string>& subscription) {
    std::vector<dead_message> found;
    for (const std::string& each : subscription ? std::vector{*subscription} : subscription_names())
        if (auto one = get(transport().dead_message_of(each, id))) found.push_back(std::move(*one));
    return found;
}

dead_message_filter filter_of_events(const arguments& given) {
    return {.subscription = given.value("--subscription"), .topic = given.value("--event")};
}

std::vector<identifier> event_ids_of(const arguments& given) {
    return ids_of(given.operands(), "an event", "holdfast events list");
}

} // namespace holdfast::cli
