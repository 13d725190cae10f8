#include <stdexcept>

#include "catch.hpp"
#include "jobs/job_verdict.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using kind = settlement::kind;

namespace {

constexpr job_options plain{.name = "work"};
constexpr retry_settings waits = job_waits({.delay = 10s, .jitter = false});

job_verdict::circumstances about(const job_options& options = plain) {
    return {.options = options, .waits = waits};
}
template <class E>
settlement thrown(const job_verdict::circumstances& in, E e) {
    random_series random(1);
    return job_verdict::after_throw(in, std::make_exception_ptr(std::move(e)), random);
}
settlement returned(const job_verdict::circumstances& in, error e) {
    random_series random(1);
    return job_verdict::after_error(in, e, random);
}

} // namespace

TEST_CASE("an attempt that returned succeeded, unless it asked to be snoozed") {
    CHECK(job_verdict::after_return(about(), "out").how == kind::succeed);
    CHECK(job_verdict::after_return(about(), "out").output == "out");
    auto in = about();
    in.snooze = -5s;
    CHECK(job_verdict::after_return(in, "").how == kind::snooze);
    CHECK(job_verdict::after_return(in, "").when.delay == 0s);
    in.cancelled = in.timed_out = in.stopping = true;
    in.snooze.reset();
    CHECK(job_verdict::after_return(in, "").how == kind::succeed); // it happened all the same
}

TEST_CASE("the wait doubles with the attempts, and a wish of the handler's goes before all") {
    auto in = about();
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 10s);
    in.attempt = 3;
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 40s);
    CHECK(thrown(in, failed({errc::unavailable, "x", 7s})).when.delay == 7s);
    in.retry_after = 3s;
    CHECK(thrown(in, failed({errc::unavailable, "x", 7s})).when.delay == 3s);
    CHECK(returned(in, {errc::unavailable, "x", 7s}).when.delay == 3s);
}

TEST_CASE("a delay of the job's own making is kept within its limits, and one that throws is a dead letter") {
    constexpr auto own =
        job_waits({.max_delay = 1min,
                   .delay_for = [](const failure&, int n) -> std::optional<duration> { return n == 1 ? -1s : 1h; }});
    constexpr auto throwing =
        job_waits({.delay_for = [](const failure&, int) -> std::optional<duration> { throw 42; }});
    job_verdict::circumstances in{.options = plain, .waits = own};
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 0s);
    in.attempt = 2;
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 1min);
    const job_verdict::circumstances bad{.options = plain, .waits = throwing};
    CHECK(thrown(bad, std::runtime_error("x")).how == kind::dead_letter);
    CHECK(thrown(bad, std::runtime_error("x")).error.message ==
          "x; and a rule of the job failed over it: an exception of type int");
}

TEST_CASE("a wish to cancel wins over a stop, a stop over a timeout, and that over the error") {
    auto in = about();
    in.timed_out = true;
    CHECK(thrown(in, operation_cancelled()).how == kind::retry);
    CHECK(thrown(in, operation_cancelled()).error.type == "timed_out");
    CHECK(thrown(in, non_retryable_error("no")).how == kind::dead_letter);
    CHECK(returned(in, {errc::cancelled, "c", {}}).error.type == "timed_out");
    in.stopping = true;
    CHECK(thrown(in, operation_cancelled()).how == kind::release);
    in.may_restart = false;
    CHECK(thrown(in, operation_cancelled()).how == kind::fail);
    in.cancelled = true;
    CHECK(thrown(in, std::runtime_error("x")).how == kind::cancel);
    random_series random(1);
    CHECK(job_verdict::when_stuck(in, random).how == kind::cancel);
    in.cancelled = false;
    CHECK(job_verdict::when_stuck(in, random).how == kind::retry);
}

TEST_CASE("a stop rule counts for timeouts and for returned failures too") {
    constexpr job_options strict{.name = "work", .rules = {stop_on(errc::timed_out), stop_on(errc::not_found)}};
    auto in = about(strict);
    CHECK(returned(in, {errc::not_found, "x", {}}).how == kind::dead_letter);
    CHECK(returned(in, {errc::unavailable, "x", {}}).how == kind::retry);
    in.timed_out = true;
    CHECK(thrown(in, operation_cancelled()).how == kind::dead_letter);
}

TEST_CASE("a text for the store is well-formed and not endless") {
    CHECK(job_verdict::clean_text("grüße") == "grüße");
    CHECK(job_verdict::clean_text(std::string("a\0b", 3)) == "a?b");
    CHECK(job_verdict::clean_text("a\xc3") == "a?");
    std::string umlauts;
    for (int i = 0; i < 10'000; ++i) umlauts += "ü";
    const std::string cut = job_verdict::clean_text(umlauts);
    CHECK(cut.size() <= 8195);
    CHECK(cut.find('?') == std::string::npos);
}
