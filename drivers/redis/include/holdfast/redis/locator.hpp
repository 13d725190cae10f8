// Which server to talk to now: the one that was named, the one that a cluster pointed to, or the master that sentinels
// know of. Any thread.
#pragma once

#include <mutex>
#include <optional>

#include <holdfast/redis/client.hpp>

namespace holdfast::redis {

class locator {
public:
    explicit locator(const options& how);

    // Where to connect. Blocks while sentinels are asked. errc::unavailable: no sentinel knows.
    result<address> find();
    // It could not be reached, or is no master: find() looks further. True: it may find another one.
    bool doubt(const address& found);
    // A cluster told us which node has our slot.
    void move_to(std::string host, std::uint16_t port);

    // What was found last, for messages and for who must not wait.
    address last() const;
    bool asks_sentinels() const noexcept { return !where_.master.empty(); }

private:
    result<address> ask_sentinels();

    const place_list where_;
    const std::string sentinel_password_;
    const duration timeout_;
    mutable std::mutex mutex_;
    std::size_t at_ = 0; // of the servers
    address last_;
    bool known_ = false; // sentinels need not be asked
};

// Pure. "MOVED 3999 127.0.0.1:6381"
struct node {
    std::string host; // empty: the one that said it
    std::uint16_t port = 0;
};
std::optional<node> moved_to(const reply& r);

} // namespace holdfast::redis
