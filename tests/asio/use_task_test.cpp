// Asio operations and awaitables in a task.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <holdfast/asio_bridge.hpp>
#include <holdfast/asio_runtime.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task_scope.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

using local_socket = asio::local::stream_protocol::socket;

struct no_default {
    explicit no_default(int n) : value(std::make_unique<int>(n)) {}
    std::unique_ptr<int> value;
};

asio::awaitable<no_default> make_after(duration d, int n) {
    asio::steady_timer timer(co_await asio::this_coro::executor, d);
    co_await timer.async_wait(asio::use_awaitable);
    co_return no_default(n);
}
asio::awaitable<void> throw_after(duration d) {
    asio::steady_timer timer(co_await asio::this_coro::executor, d);
    co_await timer.async_wait(asio::use_awaitable);
    throw std::runtime_error("from the awaitable");
}

task<void> wait_on(asio::steady_timer& timer, std::stop_token stop) {
    co_await timer.async_wait(use_task(std::move(stop)));
}

// An operation of one's own with these completions: nothing, one value, two values.
template <class Signature, class Token, class... Values>
auto async_give(asio::io_context::executor_type on, Token&& token, Values... values) {
    auto start = [on](auto handler, Values... v) {
        asio::post(on, [h = std::move(handler), ... v = std::move(v)]() mutable { std::move(h)(std::move(v)...); });
    };
    return asio::async_initiate<Token, Signature>(start, token, std::move(values)...);
}

struct refuses {
    using executor_type = asio::io_context::executor_type;
    executor_type get_executor() const noexcept { return on; }
    void operator()(auto) const { throw std::logic_error("not today"); }
    executor_type on;
};

enum class ended { with_value, cancelled, stopped, otherwise };

template <class T>
ended end_of(task<T> what) {
    try {
        sync_wait(std::move(what));
        return ended::with_value;
    } catch (const operation_cancelled&) {
        return ended::cancelled;
    } catch (const failed& e) {
        return e.code() == errc::stopped ? ended::stopped : ended::otherwise;
    } catch (...) {
        return ended::otherwise;
    }
}

} // namespace

TEST_CASE("use_task: an Asio operation is awaited from a task") {
    asio_runtime rt;
    auto nap = [](asio_runtime& on) -> task<duration> {
        const time_point start = on.now();
        asio::steady_timer timer(on.context(), 2ms);
        co_await timer.async_wait(use_task);
        co_return on.now() - start;
    };
    CHECK(sync_wait(nap(rt)) >= 2ms);
}

TEST_CASE("use_task: gives what follows the error: nothing, a value, or a tuple") {
    asio_runtime rt;
    const auto ex = rt.get_executor();
    using error = boost::system::error_code;
    static_assert(std::is_same_v<decltype(async_give<void()>(ex, use_task)), task<void>>);
    CHECK(sync_wait(async_give<void(error, std::string)>(ex, use_task, error{}, std::string("one"))) == "one");
    CHECK(sync_wait(async_give<void(int)>(ex, use_task, 5)) == 5);
    CHECK(sync_wait(async_give<void(std::exception_ptr, int, char)>(ex, use_task, std::exception_ptr{}, 1, 'c')) ==
          std::tuple(1, 'c'));
    auto moved = sync_wait(async_give<void(std::unique_ptr<int>)>(ex, use_task, std::make_unique<int>(3)));
    CHECK(*moved == 3);
}

TEST_CASE("use_task: an error code is thrown as a system_error, an exception_ptr is rethrown") {
    asio_runtime rt;
    const auto ex = rt.get_executor();
    using error = boost::system::error_code;
    CHECK_THROWS_AS(sync_wait(async_give<void(error)>(ex, use_task, error(asio::error::eof))),
                    boost::system::system_error);
    auto boom = std::make_exception_ptr(std::logic_error("boom"));
    CHECK_THROWS_AS(sync_wait(async_give<void(std::exception_ptr)>(ex, use_task, boom)), std::logic_error);
}

TEST_CASE("use_task: what the initiation throws comes out of the task") {
    asio_runtime rt;
    const refuses start{rt.get_executor()};
    std::stop_source stop;
    CHECK_THROWS_AS(sync_wait(asio::async_initiate<const use_task_t, void()>(start, use_task)), std::logic_error);
    auto stoppable = use_task(stop.get_token());
    CHECK_THROWS_AS(sync_wait(asio::async_initiate<use_stoppable_task_t, void()>(start, stoppable)), std::logic_error);
}

TEST_CASE("use_task: 100,000 operations in one task do not grow the stack") {
    asio_runtime rt({.threads = 1});
    auto loop = [](asio::io_context::executor_type ex) -> task<int> {
        int sum = 0;
        for (int i = 0; i < 100'000; ++i) sum += co_await async_give<void(int)>(ex, use_task, 1);
        co_return sum;
    };
    CHECK(sync_wait(loop(rt.get_executor())) == 100'000);
}

TEST_CASE("use_task(stop): a stop that comes first never starts the operation") {
    asio_runtime rt;
    asio::steady_timer timer(rt.context(), 1h);
    std::stop_source stop;
    stop.request_stop();
    CHECK(end_of(wait_on(timer, stop.get_token())) == ended::cancelled);
}

TEST_CASE("use_task(stop): cancels the operation, and says cancelled rather than aborted") {
    asio_runtime rt;
    asio::steady_timer timer(rt.context(), 1h);
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    CHECK(end_of(wait_on(timer, stop.get_token())) == ended::cancelled);
}

TEST_CASE("use_task(stop): an operation that somebody else cancels is aborted, not cancelled") {
    asio::io_context io;
    asio::steady_timer timer(io, 1h);
    const std::stop_source stop;
    task_scope scope;
    scope.spawn(wait_on(timer, stop.get_token()));
    io.poll();
    timer.cancel();
    io.run();
    CHECK_THROWS_AS(sync_wait(scope.join()), boost::system::system_error);
}

TEST_CASE("use_task(stop): stops race completions on a context with several threads") {
    asio_runtime rt({.threads = 3});
    int cancelled = 0;
    for (int round = 0; round < 300; ++round) {
        asio::steady_timer timer(rt.context(), (round % 5) * 10us);
        std::stop_source stop;
        std::jthread stopper([&] { stop.request_stop(); });
        const auto end = end_of(wait_on(timer, stop.get_token()));
        CHECK((end == ended::with_value || end == ended::cancelled));
        cancelled += end == ended::cancelled;
    }
    INFO(cancelled << " of 300 were cancelled");
    SUCCEED();
}

TEST_CASE("use_task(stop): a composed operation is cancelled midway on a context with several threads") {
    asio_runtime rt({.threads = 2});
    for (int round = 0; round < 100; ++round) {
        local_socket here(rt.context()), there(rt.context());
        asio::local::connect_pair(here, there);
        std::vector<char> in(1'000);
        std::stop_source stop;
        std::jthread feeder([&] {
            const std::string some(1, 'x');
            for (int i = 0; i < round; ++i) asio::write(there, asio::buffer(some));
            stop.request_stop();
        });
        auto read = [](local_socket& from, std::vector<char>& into, std::stop_token s) -> task<std::size_t> {
            co_return co_await asio::async_read(from, asio::buffer(into), use_task(std::move(s)));
        };
        CHECK(end_of(read(here, in, stop.get_token())) == ended::cancelled);
    }
}

TEST_CASE("bridges: a context that goes away ends the task instead of leaving it for ever") {
    const bool stoppable = GENERATE(false, true);
    const bool started = GENERATE(false, true);
    const std::stop_source stop;
    const auto token = stoppable ? stop.get_token() : std::stop_token();
    std::optional<asio::io_context> io(std::in_place);
    task_scope scope;
    scope.spawn(to_task(io->get_executor(), throw_after(1h), token));
    if (started) io->poll();
    else scope.spawn(asio::post(*io, use_task(token)));
    CHECK(scope.running() == (started ? 1 : 2));
    io.reset();
    CHECK(scope.running() == 0);
    CHECK(end_of(scope.join()) == ended::stopped);
}

TEST_CASE("to_task: an awaitable gives its value, also one without a default") {
    asio_runtime rt;
    const std::stop_source stop;
    const auto token = GENERATE(false, true) ? stop.get_token() : std::stop_token();
    CHECK(*sync_wait(to_task(rt.get_executor(), make_after(1ms, 7), token)).value == 7);
}

TEST_CASE("to_task: an exception leaves the awaitable through the task") {
    asio::io_context io;
    task_scope scope;
    scope.spawn(to_task(io.get_executor(), throw_after(1ms)));
    io.run();
    CHECK_THROWS_WITH(sync_wait(scope.join()), "from the awaitable");
}

TEST_CASE("to_task: a stop cancels the awaitable") {
    asio_runtime rt;
    for (int round = 0; round < 50; ++round) {
        std::stop_source stop;
        std::jthread stopper([&] { stop.request_stop(); });
        CHECK(end_of(to_task(rt.get_executor(), make_after(1h, 1), stop.get_token())) == ended::cancelled);
    }
}

TEST_CASE("to_task: goes on where the executor runs") {
    asio::io_context io;
    std::thread::id after;
    auto go = [](asio::io_context& on, std::thread::id& where) -> task<void> {
        auto inner = to_task(on.get_executor(), make_after(0ms, 1));
        co_await std::move(inner);
        where = std::this_thread::get_id();
    };
    task_scope scope;
    scope.spawn(go(io, after));
    std::thread runner([&] { io.run(); });
    const auto expected = runner.get_id();
    runner.join();
    CHECK(after == expected);
    sync_wait(scope.join());
}
