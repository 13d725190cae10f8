// A bounded number of connections, opened when they are first needed. Any thread; calls block, but for begin().
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <holdfast/redis/client.hpp>
#include <holdfast/redis/locator.hpp>

namespace holdfast::redis {

class pool {
public:
    // The locator must outlive it.
    pool(const options& how, locator& places) : places_(places), most_(how.connections), timeout_(how.timeout) {
        idle_.reserve(most_);
    }

    struct connection {
        std::unique_ptr<client> to;
        address where;
    };

    // One command, on the server that has our data now: a cluster that points elsewhere is followed, and so are
    // sentinels when the master has changed. `begun`: begin() has sent it already.
    result<reply> call(const command& what, std::optional<connection> begun = std::nullopt);
    // Sends it without waiting for anything, if it can: the thread that waits for the answer is woken meanwhile.
    std::optional<connection> begin(const command& what);
    // Nobody will take the answer.
    void abandon(connection begun) noexcept;
    // On the server that the last call went to.
    result<std::vector<reply>> pipeline(std::span<const command> all);

private:
    // Waits for a connection, at most the timeout.
    result<connection> take();
    result<connection> open();
    // A connection that failed is not used again.
    void put(connection used) noexcept;

    locator& places_;
    std::mutex mutex_;
    std::condition_variable freed_;
    std::size_t most_;
    duration timeout_;
    std::size_t out_ = 0;
    std::vector<connection> idle_;
};

} // namespace holdfast::redis
