// The seam to the client library: one connection, commands in, replies out. Nothing else here knows hiredis.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>

#include "options.hpp"

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
    // All of them in one round trip.
    virtual result<std::vector<reply>> pipeline(std::span<const command> all) = 0;
    // False when the server has closed it meanwhile, or a call has failed.
    virtual bool usable() noexcept = 0;
};

// Logs in and chooses the database. errc::unavailable, or errc::configuration when the server refuses the login.
result<std::unique_ptr<client>> connect(const address& where, duration timeout);

} // namespace holdfast::redis
