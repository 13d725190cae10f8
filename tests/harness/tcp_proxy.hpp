// A TCP proxy on 127.0.0.1 that breaks connections in the ways that networks do. One thread, at most 64 connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace holdfast::harness {

// Any thread.
class tcp_proxy {
public:
    // Throws std::runtime_error. Forwards to that port of 127.0.0.1.
    explicit tcp_proxy(std::uint16_t to);
    ~tcp_proxy();
    tcp_proxy(const tcp_proxy&) = delete;
    tcp_proxy& operator=(const tcp_proxy&) = delete;

    std::uint16_t port() const noexcept;

    // Ends all connections at once.
    void cut();
    // Refuses new ones: they are closed as soon as they are made.
    void refuse(bool on);
    // Every byte, in both directions, waits that long.
    void delay(std::chrono::milliseconds by);
    // Requests get through and replies are thrown away, or the other way round. Connections stay open.
    void drop_replies(bool on);
    void drop_requests(bool on);
    // Once: of the next reply only that many bytes get through, then its connection ends. The server has applied the
    // request by then.
    void truncate_next_reply(std::size_t bytes);
    // How often truncate_next_reply has happened.
    int truncated() const;
    // Open now.
    std::size_t connections() const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace holdfast::harness
