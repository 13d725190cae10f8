// The seam to the client library: one connection, commands in, replies out. client_hiredis.cpp or client_redispp.cpp
// is behind it; nothing else here knows a client library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>

#include <holdfast/redis/options.hpp>

namespace holdfast::redis {

struct reply {
    enum class kind : unsigned char { nil, integer, text, status, error, list } what = kind::nil;
    std::int64_t number = 0;
    std::string text; // of a text, a status or an error
    std::vector<reply> items;

    bool is_error() const noexcept { return what == kind::error; }
    bool is_nil() const noexcept { return what == kind::nil; }
};

using command = std::vector<std::string>;

// One thread at a time. An error reply of the server is a reply, not an error.
class client {
public:
    virtual ~client() = default;

    // errc::unavailable: nothing was sent. errc::unknown_outcome: it may have been applied; the connection is of no
    // more use then.
    virtual result<reply> call(const command& what) = 0;
    // A call in two halves: begin() sends it if that needs no waiting, answer() waits for what the server says to it.
    // False: nothing that the server could apply was sent; call() may, or tells why not.
    virtual bool begin(const command&) { return false; }
    virtual result<reply> answer() { return fail(errc::internal, "redis: nothing was begun"); }
    // All of them in one round trip.
    virtual result<std::vector<reply>> pipeline(std::span<const command> all) = 0;
    // False when the server has closed it meanwhile, or a call has failed.
    virtual bool usable() noexcept = 0;
};

// A connection that listens to channels. One thread at a time, but for interrupt().
class subscription {
public:
    struct heard {
        bool alive = false; // the server said something
        bool left = false;  // the last that comes, after leave()
        std::string channel{};
        std::optional<std::string> message{}; // published on that channel
    };
    virtual ~subscription() = default;

    // Waits for something, at most so long. After an error the connection is of no more use.
    virtual result<heard> next(duration at_most) = 0;
    // Asks the server to say something.
    virtual result<void> probe() = 0;
    // Asks the server to publish nothing more to it. What was published before is still heard.
    virtual result<void> leave() = 0;
    // Where something can be read before there is something to hear; after what was heard, next() is to be asked until
    // nothing is left. None: only next() tells.
    virtual std::optional<int> descriptor() const noexcept { return std::nullopt; }
    // Ends the wait that is under way, or the next one, soon.
    virtual void interrupt() noexcept = 0;
};

// For people: which library this was built with.
std::string_view client_name() noexcept;
bool client_has_tls() noexcept;

// Log in and choose the database. errc::unavailable, or errc::configuration when the server refuses the login.
result<std::unique_ptr<client>> connect(const address& where, duration timeout);
result<std::unique_ptr<subscription>> subscribe(const address& where, std::vector<std::string> channels,
                                                duration timeout);

// Pure: what a refused login means.
error greeting_error(const address& where, std::string_view refusal);

} // namespace holdfast::redis
