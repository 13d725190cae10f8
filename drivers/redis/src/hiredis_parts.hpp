// What both clients need of hiredis, on which redis-plus-plus stands as well.
#pragma once

#include <csignal>
#include <ctime>

#include <hiredis/hiredis.h>

#include <holdfast/redis/client.hpp>

namespace holdfast::redis {

// The library writes to sockets without MSG_NOSIGNAL: keeps its SIGPIPE from the process.
class without_sigpipe {
public:
    without_sigpipe() noexcept {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~without_sigpipe() {
        const timespec at_once{};
        if (!was_pending_)
            while (sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
            }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    without_sigpipe(const without_sigpipe&) = delete;
    without_sigpipe& operator=(const without_sigpipe&) = delete;

private:
    sigset_t pipe_;
    sigset_t before_;
    bool was_pending_ = false;
};

inline reply taken(const redisReply& from) {
    reply r;
    const auto bytes = [&] { return std::string(from.str, from.len); };
    switch (from.type) {
    case REDIS_REPLY_INTEGER:
        r.what = reply::kind::integer;
        r.number = from.integer;
        break;
    case REDIS_REPLY_STRING:
        r.what = reply::kind::text;
        r.text = bytes();
        break;
    case REDIS_REPLY_STATUS:
        r.what = reply::kind::status;
        r.text = bytes();
        break;
    case REDIS_REPLY_ERROR:
        r.what = reply::kind::error;
        r.text = bytes();
        break;
    case REDIS_REPLY_ARRAY:
        r.what = reply::kind::list;
        r.items.reserve(from.elements);
        for (std::size_t i = 0; i < from.elements; ++i) r.items.push_back(taken(*from.element[i]));
        break;
    default: break;
    }
    return r;
}

inline command listening_to(const std::vector<std::string>& channels) {
    command all = {"SUBSCRIBE"};
    all.insert(all.end(), channels.begin(), channels.end());
    return all;
}

// What a subscription was told.
inline result<subscription::heard> heard_in(const redisReply& r, const std::string& place) {
    if (r.type == REDIS_REPLY_ERROR) return fail(errc::unavailable, place + ": " + std::string(r.str, r.len));
    subscription::heard h{.alive = true};
    if (r.type != REDIS_REPLY_ARRAY || r.elements != 3) return h;
    const std::string_view what(r.element[0]->str, r.element[0]->len);
    if (what == "unsubscribe") h.left = r.element[2]->integer == 0;
    if (what != "message") return h;
    h.channel.assign(r.element[1]->str, r.element[1]->len);
    h.message.emplace(r.element[2]->str, r.element[2]->len);
    return h;
}

} // namespace holdfast::redis
