#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/resilient.hpp>
#include <holdfast/sleep.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::bench;

namespace {

constexpr policy outer({.name = "outer", .retry = {.max_attempts = 1, .delay = 0s}});
constexpr policy inner({.name = "inner", .retry = {.max_attempts = 2, .delay = 0s}});
constexpr policy timed({.name = "timed", .timeout = 1s});

std::string story;

struct closing {
    ~closing() { story += ") "; }
};

// A decorator as an application would write one.
template <class Handler>
auto logged(std::string name, Handler handler) {
    return [name, handler](auto&... arguments) mutable -> std::invoke_result_t<Handler&, decltype(arguments)...> {
        story += name + "( ";
        const closing at_end;
        return handler(arguments...);
    };
}

int send(const std::string& to, int count) {
    story += to + " ";
    if (count < 0) throw std::runtime_error("no");
    return count;
}
int numbered(int failures, attempt& a) {
    if (a.number() <= failures) throw std::runtime_error("no");
    return a.number();
}
bool was_stopped(std::stop_token stop) {
    return stop.stop_requested();
}
task<std::string> send_later(std::string to, attempt& a) {
    co_await a.sleep_for(1ms);
    if (a.number() == 1) throw std::runtime_error("no");
    co_return to + " " + std::to_string(a.number());
}
task<void> sleep_long(std::stop_token stop, runtime& on) {
    if (co_await sleep_for(on, 1h, stop) != sleep_end::due) throw operation_cancelled();
}

} // namespace

TEST_CASE("a resilient handler is called with its arguments and gives its value") {
    bench on(outer);
    auto call = resilient(outer, send).on(on.policies());
    story.clear();
    CHECK(call(std::string("ann"), 3) == 3);
    CHECK_THROWS_WITH(call(std::string("bob"), -1), "no");
    CHECK(story == "ann bob bob ");
}

TEST_CASE("decorators inside the policy run again for every attempt, those outside once") {
    bench on(outer);
    story.clear();
    auto inside = resilient(outer, logged("log", send)).on(on.policies());
    CHECK_THROWS(inside(std::string("ann"), -1));
    CHECK(story == "log( ann ) log( ann ) ");
    story.clear();
    auto outside = logged("log", resilient(outer, send).on(on.policies()));
    std::string to = "ann";
    int count = -1;
    CHECK_THROWS(outside(to, count));
    CHECK(story == "log( ann ann ) ");
}

TEST_CASE("policies around each other multiply, and say which they are") {
    bench on(outer, inner);
    const auto both = resilient(outer, resilient(inner, send));
    const auto chain = both.chain();
    REQUIRE(chain.size() == 2);
    CHECK(chain[0].name() == "outer");
    CHECK(chain[1].name() == "inner");
    auto call = both.on(on.policies());
    story.clear();
    CHECK_THROWS(call(std::string("x"), -1));
    CHECK(story == "x x x x x x ");
}

TEST_CASE("each attempt gets the arguments as they were given once") {
    bench on(inner);
    std::vector<std::string> seen;
    auto call = resilient(inner, [&](std::string& text) {
                    seen.push_back(text);
                    text += "!";
                    if (seen.size() < 3) throw 1;
                    return text;
                }).on(on.policies());
    const std::string mine = "a";
    CHECK(call(mine) == "a!!!");
    CHECK(seen == std::vector<std::string>{"a", "a!", "a!!"}); // copied once per call, not per attempt
    CHECK(mine == "a");
}

TEST_CASE("a handler may ask for its attempt or for a stop token after its arguments") {
    bench on(inner, timed);
    auto by_attempt = resilient(inner, numbered).on(on.policies());
    CHECK(by_attempt(2) == 3);
    auto by_token = resilient(timed, was_stopped).on(on.policies());
    CHECK_FALSE(by_token());
    auto slow = resilient(timed, [&](std::stop_token stop) {
                    return on.on.advance(2s), stop.stop_requested();
                }).on(on.policies());
    CHECK(slow());
}

TEST_CASE("a stop token given last belongs to the call") {
    bench on(inner);
    std::stop_source stop;
    auto call = resilient(inner, send).on(on.policies());
    CHECK(call(std::string("x"), 1, stop.get_token()) == 1);
    stop.request_stop();
    story.clear();
    CHECK_THROWS_AS(call(std::string("x"), 1, stop.get_token()), operation_cancelled);
    CHECK(story.empty());
}

TEST_CASE("a coroutine handler is awaited, and keeps its arguments") {
    bench on(outer, timed);
    auto call = resilient(outer, send_later).on(on.policies());
    auto started = call(std::string("a rather long name, so that it lives on the heap"));
    CHECK(sync_wait(on.on, std::move(started)) == "a rather long name, so that it lives on the heap 2");
    CHECK(on.elapsed() == 2ms);
    auto slow =
        resilient(timed, [&](std::stop_token stop) { return sleep_long(std::move(stop), on.on); }).on(on.policies());
    CHECK_THROWS_AS(sync_wait(on.on, slow()), failed);
    CHECK(on.elapsed() == 1s + 2ms);
}

TEST_CASE("nested coroutine handlers multiply too") {
    bench on(outer, inner);
    int calls = 0;
    const auto count = [](int& n) -> task<int> {
        if (++n < 6) throw std::runtime_error("no");
        co_return n;
    };
    auto call = resilient(outer, resilient(inner, [&] { return count(calls); })).on(on.policies());
    CHECK(sync_wait(on.on, call()) == 6);
}

TEST_CASE("the end of an outer attempt reaches the handler inside") {
    bench on(timed, inner);
    int calls = 0;
    auto call = resilient(timed, resilient(inner,
                                           [&](std::stop_token stop) {
                                               ++calls;
                                               return sleep_long(std::move(stop), on.on);
                                           }))
                    .on(on.policies());
    CHECK_THROWS_AS(sync_wait(on.on, call()), failed);
    CHECK(on.elapsed() == 1s);
    CHECK(calls == 1);
}

TEST_CASE("a policy that nobody registered is found out when binding") {
    bench on(outer);
    CHECK_THROWS_AS(resilient(inner, send).on(on.policies()), failed);
    CHECK_THROWS_AS(resilient(outer, resilient(inner, send)).on(on.policies()), failed);
}

TEST_CASE("a bound handler gives a reference where its function does") {
    bench on(outer);
    static int number = 5;
    auto call = resilient(outer, []() -> int& { return number; }).on(on.policies());
    int& seen = call();
    CHECK(&seen == &number);
}
