// What the loops of a relay share. Every coroutine of a relay keeps it alive.
//
//   feed(): outbox -> batches, as many at a time as may be on their way       fly(): one batch -> transport -> marked
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <holdfast/event_relay.hpp>
#include <holdfast/task_scope.hpp>

#include "jobs/wake_signal.hpp"
#include "loop_parts.hpp"

namespace holdfast::detail {

struct relay_state : std::enable_shared_from_this<relay_state> {
    using self = std::shared_ptr<relay_state>;

    relay_state(relay_parts parts, relay_options options, std::uint64_t seed);

    result<void> check() const;
    static task<void> stop(self s);
    void abandon() noexcept;
    relay_snapshot snapshot() const;

    // A batch under its leases.
    struct flight {
        std::vector<leased_message> messages;
        time_point leases_end{};
        std::vector<const message_lease*> sent{};
        std::vector<message_failure> failed{};
        std::set<std::string> held_up{}; // keys of which one message has to wait
    };

    static task<void> feed(self s);
    static task<void> fly(self s, flight batch);
    task<void> publish_all(flight& batch);
    // What is left of a range once messages that may not be sent now are out of it.
    std::vector<envelope> sendable(const flight& batch, std::size_t from, std::size_t size,
                                   std::vector<const leased_message*>& which) const;
    void judge(flight& batch, const leased_message& one, const error& why);
    task<void> mark(flight& batch);
    void count_answers(std::span<const write_answer> answers, std::uint64_t relay_snapshot::* as);

    // False: there is no point in trying again before the leases end.
    task<bool> wait_to_try_again(int n, std::optional<duration> asked, time_point leases_end);

    relay_parts with; // does not change
    const relay_options how;
    std::string name;

    mutable std::mutex mutex;
    random_series random;
    relay_snapshot counts;
    int flights = 0;
    bool started = false;
    bool stop_began = false;
    bool stopping = false;
    time_point give_up_at = never; // once stopping

    outage_log outbox_outage;
    outage_log transport_outage;
    std::stop_source hurry; // fires when stopping
    wake_signal feeder;
    task_scope loops;
};

} // namespace holdfast::detail
