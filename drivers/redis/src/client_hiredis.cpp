#include <array>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "hiredis_parts.hpp"

namespace holdfast::redis {

namespace {

struct free_context {
    void operator()(redisContext* c) const noexcept { redisFree(c); }
};
using context_pointer = std::unique_ptr<redisContext, free_context>;
struct free_reply {
    void operator()(void* r) const noexcept { freeReplyObject(r); }
};

timeval to_timeval(duration d) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(d).count();
    return {static_cast<time_t>(us / 1'000'000), static_cast<suseconds_t>(us % 1'000'000)};
}

bool append_to(redisContext* to, const command& what) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    texts.reserve(what.size());
    sizes.reserve(what.size());
    for (const std::string& each : what) {
        texts.push_back(each.data());
        sizes.push_back(each.size());
    }
    return redisAppendCommandArgv(to, static_cast<int>(what.size()), texts.data(), sizes.data()) == REDIS_OK;
}

class hiredis_client final : public client {
public:
    hiredis_client(context_pointer context, std::string place)
        : context_(std::move(context)), place_(std::move(place)) {}

    result<reply> call(const command& what) override {
        const without_sigpipe quiet;
        if (!append(what)) return cannot_take();
        return next_reply();
    }

    // What the socket takes at once even when the system gives it little memory.
    bool begin(const command& what) override {
        constexpr std::size_t most = 16'384;
        std::size_t size = 0;
        for (const std::string& each : what) size += each.size() + 16;
        if (size > most || !usable()) return false;
        const without_sigpipe quiet;
        if (!append(what)) return false;
        for (int done = 0; done == 0;) {
            if (redisBufferWrite(context_.get(), &done) == REDIS_OK) continue;
            broken_ = true;
            return false;
        }
        return true;
    }
    // A small call is answered sooner than a sleeping thread is woken.
    result<reply> answer() override {
        const without_sigpipe quiet;
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{60};
        pollfd one{context_->fd, POLLIN, 0};
        while (::poll(&one, 1, 0) == 0 && std::chrono::steady_clock::now() < until) ::sched_yield();
        return next_reply();
    }

    result<std::vector<reply>> pipeline(std::span<const command> all) override {
        const without_sigpipe quiet;
        for (const command& each : all)
            if (!append(each)) return cannot_take();
        std::vector<reply> replies;
        replies.reserve(all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto next = next_reply();
            if (!next) return std::unexpected(next.error());
            replies.push_back(std::move(*next));
        }
        return replies;
    }

    // There is nothing to read from an idle connection, but its end.
    bool usable() noexcept override {
        if (broken_ || context_->err != 0) return false;
        pollfd one{context_->fd, POLLIN, 0};
        return ::poll(&one, 1, 0) == 0;
    }

    context_pointer release() noexcept { return std::move(context_); }

private:
    std::unexpected<error> cannot_take() const {
        return fail(errc::internal, place_ + ": the client library cannot take the command");
    }
    result<reply> next_reply() {
        void* raw = nullptr;
        if (redisGetReply(context_.get(), &raw) != REDIS_OK || raw == nullptr) {
            broken_ = true;
            return fail(errc::unknown_outcome,
                        place_ + ": the connection was lost before the answer: " + std::string(context_->errstr));
        }
        const std::unique_ptr<void, free_reply> owned(raw);
        return taken(*static_cast<redisReply*>(raw));
    }
    bool append(const command& what) {
        if (append_to(context_.get(), what)) return true;
        broken_ = true;
        return false;
    }

    context_pointer context_;
    std::string place_;
    bool broken_ = false;
};

class hiredis_subscription final : public subscription {
public:
    hiredis_subscription(context_pointer context, std::vector<std::string> channels, std::string place)
        : context_(std::move(context)), channels_(std::move(channels)), place_(std::move(place)),
          bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        context_->flags &= ~REDIS_BLOCK; // whoever watches its descriptor may have it so: an empty socket is no error
    }
    ~hiredis_subscription() override { ::close(bell_); }

    result<heard> next(duration at_most) override {
        auto found = buffered();
        if (!found || found->alive) return found;
        std::array<pollfd, 2> both{{{context_->fd, POLLIN, 0}, {bell_, POLLIN, 0}}};
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
        ::poll(both.data(), both.size(), static_cast<int>(wait));
        std::uint64_t rung = 0;
        if (both[1].revents != 0) static_cast<void>(!::read(bell_, &rung, sizeof rung));
        if (both[0].revents == 0) return heard{};
        if (redisBufferRead(context_.get()) != REDIS_OK) return lost();
        return buffered();
    }

    result<void> probe() override { return say(listening_to(channels_)); }
    result<void> leave() override { return say({"UNSUBSCRIBE"}); }
    std::optional<int> descriptor() const noexcept override { return context_->fd; }

    void interrupt() noexcept override {
        const std::uint64_t one = 1;
        static_cast<void>(!::write(bell_, &one, sizeof one));
    }

private:
    result<void> say(const command& what) {
        const without_sigpipe quiet;
        if (!append_to(context_.get(), what)) return lost();
        for (int done = 0; done == 0;)
            if (redisBufferWrite(context_.get(), &done) != REDIS_OK) return lost();
        return {};
    }
    std::unexpected<error> lost() const {
        return fail(errc::unavailable, place_ + ": the subscription was lost: " + std::string(context_->errstr));
    }
    result<heard> buffered() {
        void* raw = nullptr;
        if (redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK) return lost();
        if (raw == nullptr) return heard{};
        const std::unique_ptr<void, free_reply> owned(raw);
        return heard_in(*static_cast<redisReply*>(raw), place_);
    }

    context_pointer context_;
    std::vector<std::string> channels_;
    std::string place_;
    int bell_;
};

// Nothing of an application was sent yet: whatever goes wrong here is errc::unavailable.
result<void> greet(client& to, const address& where, const command& words) {
    const auto answer = to.call(words);
    if (!answer) return fail(errc::unavailable, answer.error().message);
    if (answer->is_error()) return std::unexpected(greeting_error(where, answer->text));
    return {};
}

result<std::unique_ptr<hiredis_client>> open(const address& where, duration timeout) {
    const without_sigpipe quiet;
    const timeval limit = to_timeval(timeout);
    context_pointer context(redisConnectWithTimeout(where.host.c_str(), where.port, limit));
    if (context == nullptr) return fail(errc::unavailable, where.place() + ": out of memory");
    if (context->err != 0)
        return fail(errc::unavailable, where.place() + ": cannot connect: " + std::string(context->errstr));
    ::fcntl(context->fd, F_SETFD, FD_CLOEXEC); // a program that a handler starts must not seem to listen
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

} // namespace

std::string_view client_name() noexcept {
    return "hiredis";
}
bool client_has_tls() noexcept {
    return false;
}

result<std::unique_ptr<client>> connect(const address& where, duration timeout) {
    auto opened = open(where, timeout);
    if (!opened) return std::unexpected(opened.error());
    return std::move(*opened);
}

result<std::unique_ptr<subscription>> subscribe(const address& where, std::vector<std::string> channels,
                                                duration timeout) {
    auto opened = open(where, timeout);
    if (!opened) return std::unexpected(opened.error());
    auto made = std::make_unique<hiredis_subscription>((*opened)->release(), std::move(channels), where.place());
    if (auto asked = made->probe(); !asked) return std::unexpected(asked.error());
    return made;
}

} // namespace holdfast::redis
