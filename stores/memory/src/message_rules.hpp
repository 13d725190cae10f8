// The outbox and the inbox as plain functions of a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/outbox_store.hpp>

#include "expiring_map.hpp"
#include "key_rules.hpp"

namespace holdfast::memory {

class message_rules {
public:
    message_rules(journal& undo, token_series& tokens) : undo_(undo), received_(undo), tokens_(tokens) {}

    void append(const std::vector<outgoing_message>& messages, store_time now);
    std::vector<leased_message> lease_batch(int limit, duration lease_for, store_time now);
    std::vector<write_answer> delivered(std::span<const message_lease* const> sent);
    std::vector<write_answer> failed(std::span<const message_failure> which, store_time now);
    std::vector<message_view> set_aside(int limit, std::uint64_t after_position) const;
    int send_again(const std::vector<identifier>& which, store_time now);
    int discard(const std::vector<identifier>& which);
    std::uint64_t unsent() const noexcept { return waiting_.size(); }
    bool receive(const std::string& consumer, const identifier& message, duration ttl, store_time now);
    std::vector<bool> received(const std::string& consumer, const std::vector<identifier>& messages,
                               store_time now) const;
    void clear();

private:
    struct row {
        outgoing_message message;
        store_time due{};
        std::uint64_t token = 0; // of the latest lease
        std::optional<store_time> leased_until;
        int attempts = 0;
        std::string last_error;
    };
    using rows = std::map<std::uint64_t, row>; // by position

    // The row that the lease is for; null with the answer when it cannot be written.
    std::pair<rows::iterator, write_answer> held(const message_lease& lease);
    bool is_aside(const identifier& id) const;

    journal& undo_;
    rows waiting_;
    rows aside_;
    std::map<identifier, std::uint64_t> positions_;
    std::uint64_t last_position_ = 0;
    expiring_map<std::pair<std::string, identifier>, bool> received_;
    token_series& tokens_;
};

} // namespace holdfast::memory
