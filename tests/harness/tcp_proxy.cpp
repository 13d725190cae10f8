#include "harness/tcp_proxy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::harness {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t most_connections = 64;
constexpr std::size_t most_waiting = 1u << 20; // bytes per direction, then its sender is not read from

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

struct piece {
    clock::time_point due;
    std::string bytes;
};

// One direction of a connection.
struct stream {
    int from = -1;
    int to = -1;
    bool replies = false;
    std::deque<piece> waiting{};
    std::size_t size = 0;
    bool ended = false; // the sender has; what waits still goes out

    bool readable() const { return !ended && size < most_waiting; }
    bool due(clock::time_point now) const { return !waiting.empty() && waiting.front().due <= now; }
};

struct connection {
    int client = -1;
    int server = -1;
    stream up;
    stream down;

    connection(int c, int s) : client(c), server(s), up{c, s}, down{s, c, true} {}
    ~connection() {
        ::close(client);
        ::close(server);
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
};

} // namespace

struct tcp_proxy::state {
    std::uint16_t to = 0;
    std::uint16_t port = 0;
    int listener = -1;
    int bell = -1; // rung when one of the wishes below has changed

    std::mutex mutex;
    bool cut = false;
    std::optional<std::size_t> truncate;
    std::atomic<bool> stop = false;
    std::atomic<bool> refuse = false;
    std::atomic<bool> drop_replies = false;
    std::atomic<bool> drop_requests = false;
    std::atomic<std::int64_t> delay_ms = 0;
    std::atomic<int> truncated = 0;
    std::atomic<std::size_t> open = 0;
    std::list<connection> all;
    std::thread thread;

    void ring() const {
        const std::uint64_t one = 1;
        (void)!::write(bell, &one, sizeof one);
    }

    void take_new() {
        const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0) return;
        const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in at = loopback(to);
        const bool wanted = !refuse && all.size() < most_connections;
        if (!wanted || ::connect(server, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
            ::close(client);
            ::close(server);
            return;
        }
        const int one = 1;
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        all.emplace_back(client, server);
    }

    // False: the connection is to end.
    bool read_some(stream& s) {
        std::array<char, 65536> part;
        const ssize_t got = ::recv(s.from, part.data(), part.size(), MSG_DONTWAIT);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        if (got == 0) {
            s.ended = true;
            return true;
        }
        if (s.replies ? drop_replies : drop_requests) return true;
        std::size_t count = static_cast<std::size_t>(got);
        if (s.replies) {
            const std::lock_guard lock(mutex);
            if (truncate) {
                count = std::min(count, *truncate);
                truncate.reset();
                ++truncated;
                (void)!::send(s.to, part.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL);
                return false;
            }
        }
        s.waiting.push_back({clock::now() + std::chrono::milliseconds(delay_ms), std::string(part.data(), count)});
        s.size += count;
        return true;
    }

    bool write_some(stream& s) {
        while (s.due(clock::now())) {
            std::string& bytes = s.waiting.front().bytes;
            const ssize_t sent = ::send(s.to, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0) return errno == EAGAIN || errno == EINTR;
            s.size -= static_cast<std::size_t>(sent);
            bytes.erase(0, static_cast<std::size_t>(sent));
            if (bytes.empty()) s.waiting.pop_front();
        }
        return !(s.ended && s.waiting.empty());
    }

    int wait_ms() const {
        auto until = clock::now() + std::chrono::seconds{1};
        for (const connection& each : all)
            for (const stream* s : {&each.up, &each.down})
                if (!s->waiting.empty()) until = std::min(until, s->waiting.front().due);
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
        return static_cast<int>(std::max<std::int64_t>(0, ms));
    }

    void run() {
        while (!stop) {
            std::vector<pollfd> wanted = {{listener, POLLIN, 0}, {bell, POLLIN, 0}};
            const auto now = clock::now();
            open = all.size();
            for (const connection& each : all)
                for (const auto& [fd, in, out] :
                     {std::tuple{each.client, &each.up, &each.down}, std::tuple{each.server, &each.down, &each.up}})
                    wanted.push_back(
                        {fd, static_cast<short>((in->readable() ? POLLIN : 0) | (out->due(now) ? POLLOUT : 0)), 0});
            const bool blocked =
                std::ranges::any_of(all, [&](const connection& c) { return c.up.due(now) || c.down.due(now); });
            ::poll(wanted.data(), wanted.size(), blocked ? 1000 : wait_ms());

            std::uint64_t rung = 0;
            if ((wanted[1].revents & POLLIN) != 0) (void)!::read(bell, &rung, sizeof rung);
            {
                const std::lock_guard lock(mutex);
                if (cut) all.clear();
                if (std::exchange(cut, false)) continue;
            }
            std::size_t at = 2;
            for (auto c = all.begin(); c != all.end();) {
                const bool up = (wanted[at++].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
                const bool down = (wanted[at++].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
                const bool good = (!up || !c->up.readable() || read_some(c->up)) &&
                                  (!down || !c->down.readable() || read_some(c->down)) && write_some(c->up) &&
                                  write_some(c->down);
                c = good ? std::next(c) : all.erase(c);
            }
            if ((wanted[0].revents & POLLIN) != 0) take_new();
        }
        all.clear();
    }
};

tcp_proxy::tcp_proxy(std::uint16_t to) : state_(std::make_unique<state>()) {
    state& s = *state_;
    s.to = to;
    s.listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s.bell = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    if (s.listener < 0 || s.bell < 0 || ::bind(s.listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(s.listener, 64) != 0 || ::getsockname(s.listener, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        ::close(s.listener);
        ::close(s.bell);
        throw std::runtime_error("cannot listen on 127.0.0.1");
    }
    s.port = ntohs(at.sin_port);
    s.thread = std::thread([&s] { s.run(); });
}

tcp_proxy::~tcp_proxy() {
    state_->stop = true;
    state_->ring();
    state_->thread.join();
    ::close(state_->listener);
    ::close(state_->bell);
}

std::uint16_t tcp_proxy::port() const noexcept {
    return state_->port;
}
void tcp_proxy::cut() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->cut = true;
    }
    state_->ring();
}
void tcp_proxy::refuse(bool on) {
    state_->refuse = on;
}
void tcp_proxy::delay(std::chrono::milliseconds by) {
    state_->delay_ms = by.count();
}
void tcp_proxy::drop_replies(bool on) {
    state_->drop_replies = on;
}
void tcp_proxy::drop_requests(bool on) {
    state_->drop_requests = on;
}
void tcp_proxy::truncate_next_reply(std::size_t bytes) {
    const std::lock_guard lock(state_->mutex);
    state_->truncate = bytes;
}
int tcp_proxy::truncated() const {
    return state_->truncated;
}
std::size_t tcp_proxy::connections() const {
    return state_->open;
}

} // namespace holdfast::harness
