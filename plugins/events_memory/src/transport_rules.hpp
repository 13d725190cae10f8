// Messages, and the subscriptions that they go to, as plain functions of a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <holdfast/event_transport.hpp>

#include "subscription_book.hpp"

namespace holdfast::events_memory {

struct options {
    duration keep = std::chrono::hours{24 * 7}; // messages are kept for so long, for replays
    std::size_t max_backlog = 100'000;          // open messages of one subscription; then publishing waits
    std::size_t max_payload = 10u << 20;
};

class transport_rules {
public:
    explicit transport_rules(const options& with) : with_(with) {}

    result<void> publish(std::vector<envelope> batch, store_time now);
    void subscribe(const subscription& what, store_time now);
    bool unsubscribe(const std::string& name);
    std::vector<subscription_view> subscriptions(store_time now) const;

    result<std::vector<delivery>> receive(const std::string& name, int limit, duration lease_for, store_time now);
    std::vector<write_answer> renew(std::span<const delivery_lease* const> held, duration lease_for, store_time now);
    std::vector<write_answer> settle(std::span<const delivery_settlement> which, store_time now);
    result<std::optional<duration>> next_due(const std::string& name, store_time now) const;

    result<dead_message_page> dead_messages(const dead_message_filter& filter, int limit,
                                            const std::string& cursor) const;
    std::optional<dead_message> dead_message_of(const std::string& name, const identifier& id) const;
    int send_again(const std::string& name, const std::vector<identifier>& which, store_time now);
    int discard(const std::string& name, const std::vector<identifier>& which);
    result<std::uint64_t> replay(const std::string& name, const replay_point& from, store_time now);
    int sweep(int limit, store_time now);
    void clear();

    // Those for whom something may have become receivable since the last call.
    std::vector<std::string> take_woken() { return std::exchange(woken_, {}); }

private:
    struct kept {
        envelope message;
        store_time published;
    };
    struct grave {
        std::string subscription;
        position at;
    };

    void wake(const std::string& name);
    subscription_book* book_of(const std::string& name);
    const subscription_book* book_of(const std::string& name) const;
    // The dead letter of that id: where it lies, and in which book; null = none.
    const entry* find_dead(const std::string& name, const identifier& id, position& at) const;
    dead_message describe(const std::string& name, position at, const entry& e) const;

    const options with_;
    std::map<position, kept> messages_;
    std::map<identifier, position> positions_;
    std::map<std::string, subscription_book> books_;
    std::map<std::uint64_t, grave> graves_; // by the number of the death
    position last_position_ = 0;
    std::uint64_t last_token_ = 0; // not cleared, so that no token comes twice
    std::uint64_t last_death_ = 0;
    std::vector<std::string> woken_;
};

} // namespace holdfast::events_memory
