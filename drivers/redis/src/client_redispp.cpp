// The client on redis-plus-plus: its Connection, for logins, timeouts and TLS. Where to connect is locator.hpp's matter.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <sw/redis++/redis++.h>

#include "hiredis_parts.hpp"

namespace holdfast::redis {

namespace {

using clock = std::chrono::steady_clock;

// Connections show nobody their socket: one that has been idle for longer is asked whether it lives.
constexpr auto unquestioned = std::chrono::milliseconds{1};
// And so a wait for what is published looks up that often whether it was interrupted.
constexpr duration look_up = std::chrono::milliseconds{50};

// Of builds with TLS only.
template <class Options>
constexpr bool takes_tls = requires(Options o) { o.enabled; };

template <class Options>
void set_tls(Options& to, const address& where) {
    if constexpr (takes_tls<Options>) {
        in6_addr ignored{};
        const auto is_address = [&](int of) { return ::inet_pton(of, where.host.c_str(), &ignored) == 1; };
        to.enabled = where.tls;
        to.cacert = where.files.ca;
        to.cert = where.files.certificate;
        to.key = where.files.key;
        if (!is_address(AF_INET) && !is_address(AF_INET6)) to.sni = where.host; // which is for names
    }
}

// Why there is no connection with TLS, in words that name our settings where the library's do not.
error tls_error(const address& where, const sw::redis::Error& e) {
    const std::string said = e.what();
    const auto says = [&](std::string_view what) { return said.find(what) != std::string::npos; };
    const std::string before = where.place() + ": cannot connect with TLS: ";
    if (says("certificate verify failed"))
        return {errc::configuration,
                before + "its certificate is not trusted: it is not signed by " +
                    (where.files.ca.empty() ? "one that the system trusts; tls_ca names another"
                                            : "what tls_ca names, " + where.files.ca) +
                    ", or is out of date",
                {}};
    if (says("failed to create TLS context"))
        return {errc::configuration,
                before + said + " (tls_ca = \"" + where.files.ca + "\", tls_certificate = \"" +
                    where.files.certificate + "\", tls_key = \"" + where.files.key + "\")",
                {}};
    const bool silent = dynamic_cast<const sw::redis::TimeoutError*>(&e) != nullptr;
    if (silent && says("SSL_connect failed"))
        return {errc::unavailable, before + "it does not answer the handshake in time; is TLS on at that port?", {}};
    if (!silent && says("Failed to get reply"))
        return {errc::unavailable,
                before + "it hung up after the handshake, " +
                    (where.files.certificate.empty() ? "as servers do that want a certificate: tls_certificate, tls_key"
                                                     : "as servers do that do not trust " + where.files.certificate),
                {}};
    return {errc::unavailable, before + said, {}};
}

void send(sw::redis::Connection& to, const command& what) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& each : what) {
        texts.push_back(each.data());
        sizes.push_back(each.size());
    }
    to.send(static_cast<int>(what.size()), texts.data(), sizes.data());
}

class redispp_client final : public client {
public:
    redispp_client(sw::redis::Connection to, std::string place) : to_(std::move(to)), place_(std::move(place)) {}

    result<reply> call(const command& what) override {
        auto all = pipeline({&what, 1});
        if (!all) return std::unexpected(all.error());
        return std::move(all->front());
    }

    result<std::vector<reply>> pipeline(std::span<const command> all) override {
        const without_sigpipe quiet;
        try {
            for (const command& each : all) send(to_, each);
            std::vector<reply> replies;
            replies.reserve(all.size());
            for (std::size_t i = 0; i < all.size(); ++i) replies.push_back(taken(*to_.recv(false)));
            return replies;
        } catch (const sw::redis::Error& e) {
            broken_ = true;
            return fail(errc::unknown_outcome, place_ + ": the connection was lost before the answer: " + e.what());
        }
    }

    bool usable() noexcept override {
        if (broken_ || to_.broken()) return false;
        if (clock::now() - to_.last_active() < unquestioned) return true;
        try {
            return call({"PING"}).has_value();
        } catch (...) {
            return false;
        }
    }

private:
    sw::redis::Connection to_;
    std::string place_;
    bool broken_ = false;
};

class redispp_subscription final : public subscription {
public:
    redispp_subscription(sw::redis::Connection to, std::vector<std::string> channels, std::string place)
        : to_(std::move(to)), channels_(std::move(channels)), place_(std::move(place)) {}

    result<heard> next(duration at_most) override {
        const without_sigpipe quiet;
        const auto until = clock::now() + at_most;
        while (clock::now() < until && !interrupted_.exchange(false)) {
            try {
                return heard_in(*to_.recv(false), place_);
            } catch (const sw::redis::TimeoutError&) {
                to_.reset();
            } catch (const sw::redis::Error& e) {
                return fail(errc::unavailable, place_ + ": the subscription was lost: " + e.what());
            }
        }
        return heard{};
    }

    result<void> probe() override { return say(listening_to(channels_)); }
    result<void> leave() override { return say({"UNSUBSCRIBE"}); }

    void interrupt() noexcept override { interrupted_ = true; }

private:
    // What was sent is written when the next word is waited for.
    result<void> say(const command& what) {
        const without_sigpipe quiet;
        try {
            send(to_, what);
            return {};
        } catch (const sw::redis::Error& e) {
            return fail(errc::unavailable, place_ + ": the subscription was lost: " + e.what());
        }
    }

    sw::redis::Connection to_;
    std::vector<std::string> channels_;
    std::string place_;
    std::atomic<bool> interrupted_ = false;
};

result<sw::redis::Connection> open(const address& where, duration timeout, duration wait) {
    const without_sigpipe quiet;
    sw::redis::ConnectionOptions how;
    how.host = where.host;
    how.port = where.port;
    if (!where.user.empty()) how.user = where.user;
    how.password = where.password;
    how.db = where.database;
    how.keep_alive = true;
    how.connect_timeout = std::chrono::ceil<std::chrono::milliseconds>(timeout);
    how.socket_timeout = std::chrono::ceil<std::chrono::milliseconds>(wait);
    set_tls(how.tls, where);
    try {
        sw::redis::Connection made(how);
        if (where.tls) { // a server that does not like our certificate says so after the handshake only
            send(made, {"PING"});
            made.recv(false);
        }
        return made;
    } catch (const sw::redis::ReplyError& e) {
        return std::unexpected(greeting_error(where, e.what()));
    } catch (const sw::redis::Error& e) {
        if (where.tls) return std::unexpected(tls_error(where, e));
        return fail(errc::unavailable, where.place() + ": cannot connect: " + e.what());
    }
}

// The handshake and the login wait no longer than each wait for what is published will. On a line that is too slow for
// that, all of them wait longer.
result<sw::redis::Connection> open_to_listen(const address& where, duration timeout) {
    const auto give_up = clock::now() + timeout;
    for (duration wait = look_up;; wait *= 2) {
        const auto begun = clock::now();
        auto opened = open(where, timeout, std::min(timeout, wait));
        const bool too_slow = !opened && clock::now() - begun >= wait;
        if (!too_slow || wait >= timeout || clock::now() >= give_up) return opened;
    }
}

} // namespace

std::string_view client_name() noexcept {
    return takes_tls<sw::redis::tls::TlsOptions> ? "redis-plus-plus with TLS" : "redis-plus-plus without TLS";
}
bool client_has_tls() noexcept {
    return takes_tls<sw::redis::tls::TlsOptions>;
}

result<std::unique_ptr<client>> connect(const address& where, duration timeout) {
    auto opened = open(where, timeout, timeout);
    if (!opened) return std::unexpected(opened.error());
    return std::make_unique<redispp_client>(std::move(*opened), where.place());
}

result<std::unique_ptr<subscription>> subscribe(const address& where, std::vector<std::string> channels,
                                                duration timeout) {
    auto opened = open_to_listen(where, timeout);
    if (!opened) return std::unexpected(opened.error());
    auto made = std::make_unique<redispp_subscription>(std::move(*opened), std::move(channels), where.place());
    if (auto asked = made->probe(); !asked) return std::unexpected(asked.error());
    return made;
}

} // namespace holdfast::redis
