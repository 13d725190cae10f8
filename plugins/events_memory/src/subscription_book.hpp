// What one subscription has of each message, and which of them may be given out: plain functions of a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <holdfast/event_transport.hpp>

namespace holdfast::events_memory {

using position = std::uint64_t;

// One message as one subscription knows it.
struct entry {
    enum class state : unsigned char { open, settled, dead };

    std::string key;
    state is = state::open;
    store_time due{};
    std::optional<store_time> leased_until{}; // past: it ran out, and nobody has it since
    std::uint64_t token = 0;                  // of the latest lease
    std::uint64_t settled_by = 0;             // the token of the latest settlement
    int redeliveries = 0;
    int crashes = 0;
    int calls = 0;
    int generation = 1;
    store_time died{};
    std::uint64_t death = 0; // its number among the dead letters of all subscriptions
    delivery_error error{};
};

class subscription_book {
public:
    std::set<std::string, std::less<>> topics;

    // New, or once more with counts from 0.
    void open(position at, const std::string& key, int generation, store_time now);
    // In order of position, each under a lease with the next token.
    std::vector<position> give(int limit, store_time until, std::uint64_t& last_token, store_time now);
    write_answer renew(position at, std::uint64_t token, store_time until);
    // `death` numbers the dead letter that this may make.
    write_answer settle(position at, std::uint64_t token, const delivery_settlement& how, std::uint64_t death,
                        store_time now);
    // A dead letter that is forgotten leaves the mark that it was settled.
    void bury(position at);
    void forget(position at) { entries_.erase(at); }

    const entry* find(position at) const;
    bool needs(position at) const;
    std::optional<duration> next_due(store_time now) const;
    std::size_t open_count() const noexcept { return open_; }
    std::size_t ready_count() const noexcept { return ready_.size(); } // as of the latest change
    subscription_view view(const std::string& name, store_time now) const;

private:
    static bool is_free(const entry& e, store_time now) noexcept {
        return e.due <= now && (!e.leased_until || *e.leased_until <= now);
    }
    bool is_first_of_key(position at, const entry& e) const;
    void wait_or_get_ready(position at, const entry& e, store_time now);
    void stop_waiting(position at, const entry& e);
    void wake(store_time now);
    void close(position at, entry& e, entry::state to, store_time now);

    std::map<position, entry> entries_;
    std::unordered_map<std::string, std::set<position>> rows_; // open ones by key
    std::set<position> ready_;                                 // free, and the first of their keys
    std::set<std::pair<store_time, position>> waiting_;        // when they may become so
    std::size_t open_ = 0;
    std::uint64_t dead_ = 0;
    std::uint64_t acknowledged_ = 0;
    std::uint64_t discarded_ = 0;
};

} // namespace holdfast::events_memory
