// Tasks as Asio operations and in awaitables.
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <holdfast/asio_bridge.hpp>
#include <holdfast/asio_runtime.hpp>
#include <holdfast/sleep.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

task<int> add_after(runtime& on, duration d, int a, int b) {
    co_await sleep_for(on, d);
    co_return a + b;
}
task<int> add_now(int a, int b) {
    co_return a + b;
}
task<void> throw_later(runtime& on) {
    co_await resume_on(on);
    throw std::runtime_error("from the task");
}
task<std::unique_ptr<int>> give_pointer(runtime& on) {
    co_await resume_on(on);
    co_return std::make_unique<int>(9);
}
struct no_default {
    explicit no_default(int n) : value(n) {}
    int value;
};
task<no_default> give_no_default(runtime& on) {
    co_await resume_on(on);
    co_return no_default(4);
}
task<sleep_end> sleep_long(runtime& on, std::stop_token stop) {
    co_return co_await sleep_for(on, 1h, std::move(stop));
}

} // namespace

TEST_CASE("async_run: a callback gets the value, on its executor, never inside the call") {
    asio_runtime rt;
    asio::io_context io;
    int got = 0;
    std::thread::id where;
    async_run(io.get_executor(), add_now(2, 3), [&](std::exception_ptr e, int value) {
        got = e ? -1 : value;
        where = std::this_thread::get_id();
    });
    CHECK(got == 0);
    io.run();
    CHECK(got == 5);
    CHECK(where == std::this_thread::get_id());
}

TEST_CASE("async_run: the context stays busy until a task that runs elsewhere has ended") {
    asio_runtime rt;
    asio::io_context io;
    int got = 0;
    std::thread::id where;
    async_run(io.get_executor(), add_after(rt, 2ms, 2, 3), [&](std::exception_ptr, int value) {
        got = value;
        where = std::this_thread::get_id();
    });
    io.run();
    CHECK(got == 5);
    CHECK(where == std::this_thread::get_id());
}

TEST_CASE("async_run: completes on the executor that is bound to the handler") {
    asio_runtime rt;
    asio::io_context start, home;
    bool ran = false;
    async_run(start.get_executor(), add_now(1, 1),
              asio::bind_executor(home.get_executor(), [&](std::exception_ptr, int) { ran = true; }));
    start.run();
    CHECK_FALSE(ran);
    home.run();
    CHECK(ran);
}

TEST_CASE("async_run: an exception reaches the handler") {
    asio_runtime rt;
    asio::io_context io;
    std::exception_ptr thrown;
    async_run(io.get_executor(), throw_later(rt), [&](std::exception_ptr e) { thrown = e; });
    io.run();
    REQUIRE(thrown != nullptr);
    CHECK_THROWS_WITH(std::rethrow_exception(thrown), "from the task");
}

TEST_CASE("async_run: what a handler throws leaves the context's run, as ever") {
    asio::io_context io;
    async_run(io.get_executor(), add_now(1, 1), [](std::exception_ptr, int) { throw std::logic_error("handler"); });
    CHECK_THROWS_WITH(io.run(), "handler");
}

TEST_CASE("async_run: a future") {
    asio_runtime rt;
    CHECK(async_run(rt.get_executor(), add_after(rt, 1ms, 20, 22), asio::use_future).get() == 42);
    CHECK(*async_run(rt.get_executor(), give_pointer(rt), asio::use_future).get() == 9);
    asio::io_context io;
    auto thrown = async_run(io.get_executor(), throw_later(rt), asio::use_future);
    io.run();
    CHECK_THROWS_WITH(thrown.get(), "from the task");
}

TEST_CASE("async_run: detached, deferred, and back to a task") {
    asio_runtime rt;
    async_run(rt.get_executor(), add_now(1, 1), asio::detached);
    auto later = async_run(rt.get_executor(), add_now(1, 2), asio::deferred);
    CHECK(std::move(later)(asio::use_future).get() == 3);
    CHECK(sync_wait(async_run(rt.get_executor(), add_now(4, 5), use_task)) == 9);
}

TEST_CASE("async_run: the handler's cancellation slot fires the task's stop token") {
    asio_runtime rt;
    asio::io_context io;
    asio::cancellation_signal signal;
    sleep_end end = sleep_end::due;
    async_run(
        io.get_executor(), [&rt](std::stop_token stop) { return sleep_long(rt, std::move(stop)); },
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr, sleep_end e) { end = e; }));
    asio::post(io, [&] { signal.emit(asio::cancellation_type::terminal); });
    io.run();
    CHECK(end == sleep_end::cancelled);
}

TEST_CASE("async_run: a function that makes a task is kept until the task has ended") {
    asio_runtime rt;
    auto held = std::make_shared<int>(5);
    auto result = async_run(
        rt.get_executor(),
        [held, &rt](std::stop_token) -> task<int> { // a coroutine that reads its captures after a suspension
            co_await sleep_for(rt, 1ms);
            co_return *held;
        },
        asio::use_future);
    CHECK(result.get() == 5);
}

TEST_CASE("to_awaitable: a task in an awaitable") {
    asio_runtime rt;
    asio::io_context io;
    auto both = [](asio_runtime& on) -> asio::awaitable<int> {
        const int sum = co_await to_awaitable(add_after(on, 1ms, 1, 2));
        const auto pointer = co_await to_awaitable(give_pointer(on));
        const auto plain = co_await to_awaitable(give_no_default(on));
        co_return sum + *pointer + plain.value;
    };
    auto result = asio::co_spawn(io, both(rt), asio::use_future);
    io.run();
    CHECK(result.get() == 16);
}

TEST_CASE("to_awaitable: goes on where the awaitable runs") {
    asio_runtime rt;
    asio::io_context io;
    auto where = [](asio_runtime& on) -> asio::awaitable<std::thread::id> {
        co_await to_awaitable(add_after(on, 1ms, 1, 2));
        co_return std::this_thread::get_id();
    };
    auto result = asio::co_spawn(io, where(rt), asio::use_future);
    io.run();
    CHECK(result.get() == std::this_thread::get_id());
}

TEST_CASE("to_awaitable: an exception leaves the task through the awaitable") {
    asio_runtime rt;
    asio::io_context io;
    auto result = asio::co_spawn(io, to_awaitable(throw_later(rt)), asio::use_future);
    io.run();
    CHECK_THROWS_WITH(result.get(), "from the task");
}

TEST_CASE("to_awaitable: cancelling the awaitable fires the task's stop token") {
    asio_runtime rt;
    asio::io_context io;
    asio::cancellation_signal signal;
    sleep_end end = sleep_end::due;
    auto make = [&rt](std::stop_token stop) { return sleep_long(rt, std::move(stop)); };
    asio::co_spawn(io, to_awaitable(make),
                   asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr, sleep_end e) { end = e; }));
    asio::post(io, [&] { asio::post(io, [&] { signal.emit(asio::cancellation_type::terminal); }); });
    io.run();
    CHECK(end == sleep_end::cancelled);
}

TEST_CASE("bridges: a stop goes through an awaitable into a task and back") {
    asio_runtime rt;
    std::stop_source stop;
    auto make = [&rt](std::stop_token s) { return sleep_long(rt, std::move(s)); };
    std::jthread stopper([&] { stop.request_stop(); });
    bool cancelled = false;
    try {
        cancelled = sync_wait(to_task(rt.get_executor(), to_awaitable(make), stop.get_token())) == sleep_end::cancelled;
    } catch (const operation_cancelled&) {
        cancelled = true; // before the task began
    }
    CHECK(cancelled);
}
