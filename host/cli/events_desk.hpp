// What carries the events of a configuration, opened for one command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/event_transport.hpp>

#include "opened_host.hpp"

namespace holdfast::cli {

// Members throw failed.
class events_desk : public opened_host {
public:
    explicit events_desk(const arguments& given);

    event_transport& transport() { return opened().event_transport(); }
    store_time now() { return get(transport().now()); }

    std::vector<std::string> subscription_names();
    // Of that name, or did-you-mean.
    void must_know(const std::string& subscription);
    // The dead letters of that event: in one subscription, or in every one.
    std::vector<dead_message> dead_letters_of(const identifier& id, const std::optional<std::string>& subscription);

    // Calls use(page) for as many dead letters as are asked for, the latest first; 0 = all. True: there are more.
    template <class Use>
    bool for_each_page(const dead_message_filter& filter, int limit, Use use) {
        constexpr int page_size = 200;
        std::string cursor;
        int left = limit;
        do {
            const int size = limit == 0 ? page_size : std::min(left, page_size);
            dead_message_page page = get(transport().dead_messages(filter, size, std::move(cursor)));
            use(page.messages);
            left -= static_cast<int>(page.messages.size());
            cursor = std::move(page.next);
        } while (!cursor.empty() && (limit == 0 || left > 0));
        return !cursor.empty();
    }
};

// What the options --subscription and --event say.
dead_message_filter filter_of_events(const arguments& given);
std::vector<identifier> event_ids_of(const arguments& given);

inline const option subscription_option{"--subscription", "NAME", "only dead letters of this subscription"};
inline const option event_option{"--event", "NAME", "only dead letters of this event"};

} // namespace holdfast::cli
