// What docs/runtime-and-tasks.md quotes about Asio.
#include <chrono>
#include <exception>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>

#include <holdfast/asio_bridge.hpp>
#include <holdfast/asio_runtime.hpp>
#include <holdfast/engine.hpp>

#include "check.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

inline constexpr auto upload =
    holdfast::policy({.name = "upload", .retry = {.max_attempts = 2, .delay = 1ms}, .timeout = 5s});

// [use-task]
// An Asio operation in a task, cancelled with the attempt.
holdfast::task<std::string> send(asio::io_context& io, holdfast::attempt& a) {
    asio::steady_timer timer(io, 2ms);
    co_await timer.async_wait(holdfast::use_task(a.stop_token()));
    if (!a.last()) throw std::runtime_error("once more");
    co_return "sent";
}
// [/use-task]

// [awaitable]
// A policy from a program that is written with asio::awaitable.
asio::awaitable<std::string> send_it(holdfast::policies& policies, asio::io_context& io) {
    co_return co_await holdfast::to_awaitable([&](std::stop_token stop) {
        return policies.execute(upload, [&io](holdfast::attempt& a) { return send(io, a); }, stop).as_task();
    });
}
// [/awaitable]

} // namespace

int main() {
    // [adopt]
    asio::io_context io;                // the application's own, which it runs itself
    holdfast::asio_runtime runtime(io); // arms its timers there and posts its work there
    holdfast::engine engine(runtime);
    engine.add(upload);
    // [/adopt]
    std::string sent;
    asio::co_spawn(io, send_it(engine.policies(), io), [&](std::exception_ptr e, std::string text) {
        if (!e) sent = std::move(text);
    });
    io.run();
    runtime.stop();
    check(sent == "sent", "sent through the application's own io_context");
    std::puts("ok");
}
