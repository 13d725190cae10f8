// A Redis master, a replica, and sentinels that put the replica in its place when it dies. All the tests' own.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/child_process.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"

namespace holdfast::harness {

// One thread at a time. Whatever fails throws std::runtime_error.
class redis_sentinels {
public:
    redis_sentinels(); // until the sentinels know both servers

    redis_server& master() { return master_; } // as it was at first
    redis_server& replica() { return replica_; }
    // redis-sentinel://…/desk
    std::string url() const;
    // Has the two change places, while both live.
    void fail_over() const;
    // Until the sentinels say that the replica is the master.
    void wait_for_failover() const;

private:
    void launch(std::uint16_t port);

    redis_server master_;
    redis_server replica_;
    temporary_folder folder_{"hfsentinel"};
    std::vector<std::uint16_t> ports_;
    std::vector<std::unique_ptr<child_process>> sentinels_;
};

} // namespace holdfast::harness
