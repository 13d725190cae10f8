#include <memory>
#include <stdexcept>
#include <string>

#include <holdfast/outcome.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

execution_report report_of(errc refusal, stop_reason reason, int attempts, std::optional<duration> retry_after = {}) {
    return execution_report({.policy = "mail",
                             .reason = reason,
                             .fell_back = false,
                             .attempt_count = attempts,
                             .exception = {},
                             .cause = {},
                             .refusal = refusal,
                             .retry_after = retry_after});
}

template <class E>
std::string thrown_as(const std::exception_ptr& thrown) {
    const E* e = detail::exception_as<E>(thrown);
    return e == nullptr ? "another type" : e->what();
}

attempt_ledger filled(int count) {
    attempt_ledger ledger;
    for (int n = 1; n <= count; ++n) ledger.add().number = n;
    return ledger;
}

} // namespace

TEST_CASE("a ledger lists attempts in order") {
    const int count = GENERATE(0, 1, 3, 4, 10, 67);
    const attempt_ledger ledger = filled(count);
    CHECK(ledger.size() == static_cast<std::size_t>(count));
    CHECK(ledger.empty() == (count == 0));
    CHECK(ledger.omitted() == 0);
    int expected = 0;
    for (const attempt_record& each : ledger) CHECK(each.number == ++expected);
    CHECK(expected == count);
}

TEST_CASE("of a very long series the ledger drops the middle and says how many") {
    const int count = GENERATE(68, 69, 1000);
    attempt_ledger ledger = filled(count);
    CHECK(ledger.size() == 67);
    CHECK(ledger.omitted() == static_cast<std::size_t>(count - 67));
    for (std::size_t i = 0; i < 35; ++i) CHECK(ledger[i].number == static_cast<int>(i) + 1);
    for (std::size_t i = 35; i < 67; ++i) CHECK(ledger[i].number == count - 66 + static_cast<int>(i));
    CHECK(ledger.last()->number == count);
}

TEST_CASE("the last record of a ledger can still be changed") {
    attempt_ledger ledger;
    CHECK(ledger.last() == nullptr);
    for (int n = 1; n <= 5; ++n) {
        ledger.add().number = n;
        CHECK(ledger.last()->number == n);
        ledger.last()->delay_after = 1s * n;
    }
    for (const attempt_record& each : ledger) CHECK(each.delay_after == 1s * each.number);
}

TEST_CASE("a copy of a ledger is a ledger of its own") {
    attempt_ledger ledger = filled(5);
    const attempt_ledger copy = ledger;
    ledger.add().number = 6;
    ledger.last()->number = 7;
    CHECK(copy.size() == 5);
    CHECK(copy[4].number == 5);
}

TEST_CASE("a refusal reads as one sentence that names policy, cause, attempts and when to come back") {
    CHECK(report_of(errc::circuit_open, stop_reason::circuit_open, 0, 1500ms).error().message ==
          "policy \"mail\": the circuit is open; try again in 1.5s");
    CHECK(report_of(errc::circuit_open, stop_reason::circuit_open, 0, forever).error().message ==
          "policy \"mail\": the circuit is open");
    CHECK(report_of(errc::timed_out, stop_reason::exhausted, 1).error().message ==
          "policy \"mail\": the attempt timed out, after 1 attempt");
    CHECK(report_of(errc::timed_out, stop_reason::deadline, 3).error().message ==
          "policy \"mail\": out of time, after 3 attempts");
    CHECK(report_of(errc::rate_limited, stop_reason::rejected, 0, 20ms).error().message ==
          "policy \"mail\": over the rate limit; try again in 20ms");
    CHECK(report_of(errc::concurrency_limited, stop_reason::rejected, 0).error().message ==
          "policy \"mail\": over the concurrency limit, and its queue is full");
    CHECK(report_of(errc::cancelled, stop_reason::cancelled, 2).error().message ==
          "policy \"mail\": cancelled by the caller, after 2 attempts");
    CHECK(report_of(errc::stopped, stop_reason::cancelled, 0).error().message == "policy \"mail\": stopped");
}

TEST_CASE("a refusal keeps its code and its hint, as a value and as an exception") {
    const auto report = report_of(errc::rate_limited, stop_reason::rejected, 0, 20ms);
    CHECK(report.error().code == errc::rate_limited);
    CHECK(report.error().retry_after == 20ms);
    const std::exception_ptr thrown = report.to_exception();
    const auto* e = detail::exception_as<failed>(thrown);
    REQUIRE(e != nullptr);
    CHECK(e->code() == errc::rate_limited);
    CHECK(e->what_failed().retry_after == 20ms);
    CHECK(thrown_as<operation_cancelled>(report_of(errc::cancelled, stop_reason::cancelled, 0).to_exception()) ==
          "policy \"mail\": cancelled by the caller");
}

TEST_CASE("the user's own exception is given back as it was") {
    execution_report report;
    report.to_fill().exception = std::make_exception_ptr(std::out_of_range("nine"));
    CHECK(report.to_exception() == report.exception());
    CHECK(report.error().code == errc::internal);
    CHECK(report.error().message == "nine");
    report.to_fill().exception = std::make_exception_ptr(failed({errc::unavailable, "gone", 3s}));
    CHECK(report.error().code == errc::unavailable);
    CHECK(report.error().retry_after == 3s);
    report.to_fill().exception = std::make_exception_ptr(42);
    CHECK(report.error().message == "an exception of type int");
}

TEST_CASE("a fallback that failed keeps what it stood in for") {
    execution_report report;
    report.to_fill().exception = std::make_exception_ptr(std::runtime_error("no cache"));
    report.to_fill().cause = std::make_exception_ptr(std::logic_error("no network"));
    const std::exception_ptr thrown = report.to_exception();
    const auto* e = detail::exception_as<fallback_failed>(thrown);
    REQUIRE(e != nullptr);
    CHECK(std::string(e->what()) == "the fallback failed: no cache; it stood in for: no network");
    CHECK(thrown_as<std::runtime_error>(e->thrown()) == "no cache");
    CHECK(thrown_as<std::logic_error>(e->cause()) == "no network");
}

TEST_CASE("an outcome without a value throws its failure when asked for one") {
    outcome<int> ended;
    ended.to_fill().reason = stop_reason::exhausted;
    ended.to_fill().exception = std::make_exception_ptr(std::out_of_range("nine"));
    CHECK_FALSE(ended);
    CHECK_FALSE(ended.has_value());
    CHECK_THROWS_AS(ended.value(), std::out_of_range);
    CHECK_THROWS_AS(std::move(ended).value(), std::out_of_range);
}

TEST_CASE("an outcome moves its value out") {
    outcome<std::unique_ptr<int>> ended;
    ended.set_value(std::make_unique<int>(5));
    CHECK(ended);
    CHECK(**ended == 5);
    CHECK(*ended->get() == 5);
    const std::unique_ptr<int> mine = std::move(ended).value();
    CHECK(*mine == 5);
}

TEST_CASE("an outcome that fell back has succeeded, and still says why the attempts stopped") {
    outcome<void> ended;
    ended.to_fill().reason = stop_reason::exhausted;
    CHECK_FALSE(ended.succeeded());
    ended.to_fill().fell_back = true;
    ended.set_value(std::monostate{});
    CHECK(ended.succeeded());
    CHECK(ended.stop_reason() == stop_reason::exhausted);
    CHECK_NOTHROW(ended.value());
}

TEST_CASE("every reason and every end of an attempt has a name") {
    CHECK(to_text(stop_reason::succeeded) == "succeeded");
    CHECK(to_text(stop_reason::exhausted) == "exhausted");
    CHECK(to_text(stop_reason::deadline) == "deadline");
    CHECK(to_text(stop_reason::budget) == "budget");
    CHECK(to_text(stop_reason::circuit_open) == "circuit open");
    CHECK(to_text(stop_reason::rule) == "rule");
    CHECK(to_text(stop_reason::cancelled) == "cancelled");
    CHECK(to_text(stop_reason::rejected) == "rejected");
    CHECK(to_text(attempt_end::succeeded) == "succeeded");
    CHECK(to_text(attempt_end::failed) == "failed");
    CHECK(to_text(attempt_end::timed_out) == "timed out");
    CHECK(to_text(attempt_end::cancelled) == "cancelled");
    CHECK(to_text(attempt_end::refused) == "refused");
}
