// How consumers are called: what a blocking one waits for, and when its unit of work is opened.
#include <holdfast/event_consumer.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct parcel_sent {
    static constexpr event_options options{.name = "parcel.sent"};
    std::string number;
};

} // namespace

template <>
struct holdfast::codec<parcel_sent> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const parcel_sent& e) { return e.number; }
    static result<parcel_sent> decode(std::string_view body) { return parcel_sent{std::string(body)}; }
};

namespace {

struct no_unit final : unit_of_work {
    task<result<void>> commit() override { co_return result<void>{}; }
    task<result<void>> rollback() override { co_return result<void>{}; }
};

// Writes down what a consumer does, in order.
struct desk final : handler_clock, unit_opener {
    void handler_waits() noexcept override { told += "waits "; }
    bool handler_begins() noexcept override {
        told += "begins ";
        return may_begin;
    }
    task<result<unit_of_work*>> open() override {
        told += "opens ";
        co_await sleep_for(on, 1s);
        if (problem) co_return std::unexpected(*problem);
        co_return is_duplicate ? nullptr : &unit;
    }
    template <class Handler>
    result<void> run(Handler handler) {
        told.clear();
        const auto consumer = event_consumer_of<parcel_sent>("desk", std::move(handler));
        event_context context({.message = &what, .consumer = "desk", .clock = this}, on, nowhere, {}, nullptr);
        return sync_wait(on, consumer->run(what, context, consumer->wants_unit() ? this : nullptr));
    }

    simulated_runtime on;
    null_logger nowhere;
    no_unit unit;
    envelope what{{}, "parcel.sent", "", {.type = "parcel.sent", .body = "P-1"}, {}};
    bool may_begin = true;
    bool is_duplicate = false;
    std::optional<error> problem;
    std::string told;
};

task<void> note(std::string& told, std::string number) {
    told += "runs " + number;
    co_return;
}

} // namespace

TEST_CASE("a blocking consumer is told of while it waits for a thread and when it has one, a coroutine is not") {
    desk d;
    CHECK(d.run([&](const parcel_sent& e) { d.told += "runs " + e.number; }));
    CHECK(d.told == "waits begins runs P-1");
    CHECK(d.run([&](parcel_sent e) { return note(d.told, e.number); }));
    CHECK(d.told == "runs P-1");
}

TEST_CASE("a unit of work is opened when its consumer is about to begin, by a blocking one on its thread") {
    desk d;
    const auto blocking = [&](const parcel_sent& e, unit_of_work& in) {
        REQUIRE(&in == &d.unit);
        d.told += "runs " + e.number;
    };
    const auto coroutine = [&](parcel_sent e, unit_of_work&) { return note(d.told, e.number); };
    CHECK(d.run(blocking));
    CHECK(d.told == "waits begins opens runs P-1");
    CHECK(d.run(coroutine));
    CHECK(d.told == "opens runs P-1");

    d.is_duplicate = true; // its consumer has had it
    CHECK(d.run(blocking));
    CHECK(d.told == "waits begins opens ");
    CHECK(d.run(coroutine));
    CHECK(d.told == "opens ");

    d.problem = error{errc::unavailable, "away", std::nullopt};
    CHECK(d.run(blocking).error().code == errc::unavailable);
    CHECK(d.run(coroutine).error().code == errc::unavailable);
    CHECK(d.told == "opens ");
}

TEST_CASE("a blocking consumer that must not begin any more opens no unit") {
    desk d;
    d.may_begin = false;
    bool ran = false;
    CHECK_THROWS_AS(d.run([&](const parcel_sent&, unit_of_work&) { ran = true; }), operation_cancelled);
    CHECK(d.told == "waits begins ");
    CHECK_FALSE(ran);
}

TEST_CASE("what a blocking consumer returns or throws comes back") {
    desk d;
    CHECK(d.run([](const parcel_sent&) -> result<void> { return fail(errc::timed_out, "late"); }).error().code ==
          errc::timed_out);
    CHECK_THROWS_AS(d.run([](const parcel_sent&) { throw std::logic_error("no"); }), std::logic_error);
}
