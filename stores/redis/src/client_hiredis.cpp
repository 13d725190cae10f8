#include "client.hpp"

#include <csignal>
#include <ctime>

#include <poll.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

namespace holdfast::redis {

namespace {

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

struct free_context {
    void operator()(redisContext* c) const noexcept { redisFree(c); }
};
struct free_reply {
    void operator()(void* r) const noexcept { freeReplyObject(r); }
};

reply taken(const redisReply& from) {
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

timeval to_timeval(duration d) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(d).count();
    return {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
}

class hiredis_client final : public client {
public:
    hiredis_client(std::unique_ptr<redisContext, free_context> context, std::string place)
        : context_(std::move(context)), place_(std::move(place)) {}

    result<reply> call(const command& what) override {
        auto all = pipeline({&what, 1});
        if (!all) return std::unexpected(all.error());
        return std::move(all->front());
    }

    result<std::vector<reply>> pipeline(std::span<const command> all) override {
        const without_sigpipe quiet;
        for (const command& each : all) {
            if (!append(each)) return fail(errc::internal, place_ + ": the client library cannot take the command");
        }
        std::vector<reply> replies;
        replies.reserve(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            void* raw = nullptr;
            if (redisGetReply(context_.get(), &raw) != REDIS_OK || raw == nullptr) {
                broken_ = true;
                return fail(errc::unknown_outcome,
                            place_ + ": the connection was lost before the answer: " + std::string(context_->errstr));
            }
            const std::unique_ptr<void, free_reply> owned(raw);
            replies.push_back(taken(*static_cast<redisReply*>(raw)));
        }
        return replies;
    }

    // There is nothing to read from an idle connection, but its end.
    bool usable() noexcept override {
        if (broken_ || context_->err != 0) return false;
        pollfd one{context_->fd, POLLIN, 0};
        return ::poll(&one, 1, 0) == 0;
    }

private:
    bool append(const command& what) {
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        texts.reserve(what.size());
        sizes.reserve(what.size());
        for (const std::string& each : what) {
            texts.push_back(each.data());
            sizes.push_back(each.size());
        }
        if (redisAppendCommandArgv(context_.get(), static_cast<int>(what.size()), texts.data(), sizes.data()) ==
            REDIS_OK)
            return true;
        broken_ = true;
        return false;
    }

    std::unique_ptr<redisContext, free_context> context_;
    std::string place_;
    bool broken_ = false;
};

// Nothing of an application was sent yet: whatever goes wrong here is errc::unavailable.
result<void> greet(client& to, const address& where, const command& words) {
    const auto answer = to.call(words);
    if (!answer) return fail(errc::unavailable, answer.error().message);
    if (!answer->is_error()) return {};
    const bool refused = answer->text.starts_with("LOADING") || answer->text.starts_with("MASTERDOWN") ||
                         answer->text.find("max number of clients") != std::string::npos;
    return fail(refused ? errc::unavailable : errc::configuration, where.place() + ": " + answer->text);
}

} // namespace

result<std::unique_ptr<client>> connect(const address& where, duration timeout) {
    const without_sigpipe quiet;
    const timeval limit = to_timeval(timeout);
    std::unique_ptr<redisContext, free_context> context(redisConnectWithTimeout(where.host.c_str(), where.port, limit));
    if (context == nullptr) return fail(errc::unavailable, where.place() + ": out of memory");
    if (context->err != 0)
        return fail(errc::unavailable, where.place() + ": cannot connect: " + std::string(context->errstr));
    redisSetTimeout(context.get(), limit);
    redisEnableKeepAlive(context.get());
    auto made = std::make_unique<hiredis_client>(std::move(context), where.place());
    if (!where.password.empty()) {
        command login = {"AUTH"};
        if (!where.user.empty()) login.push_back(where.user);
        login.push_back(where.password);
        if (auto ok = greet(*made, where, login); !ok) return std::unexpected(ok.error());
    }
    if (where.database != 0)
        if (auto ok = greet(*made, where, {"SELECT", std::to_string(where.database)}); !ok)
            return std::unexpected(ok.error());
    return made;
}

} // namespace holdfast::redis
