// Which rule takes an error.
#include <expected>
#include <system_error>

#include "catch.hpp"
#include "exception_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::bad_address;
using test::rule_for;
using test::rule_for_returned;
using test::smtp_error;
using test::table_of;

namespace {

struct network_error : std::system_error {
    using std::system_error::system_error;
};
struct left : std::runtime_error {
    left() : std::runtime_error("left") {}
};
struct right {
    virtual ~right() = default;
};
struct both : left, right {};
struct more_right : right {};
struct own_cancel : operation_cancelled {};
struct twice_a : left {};
struct twice_b : left {};
struct twice : twice_a, twice_b {}; // has two `left`: cannot be caught as one

std::system_error reset() {
    return std::system_error(std::make_error_code(std::errc::connection_reset));
}

} // namespace

TEST_CASE("a rule takes its type and what derives from it") {
    exception_policy rules;
    rules.on<smtp_error>().retry();
    const auto table = table_of(rules);
    CHECK(rule_for(table, smtp_error()) == 0);
    CHECK(rule_for(table, bad_address()) == 0);
    CHECK(rule_for(table, std::runtime_error("other")) == -1);
    CHECK(rule_for(table, 42) == -1);
}

TEST_CASE("the most derived type wins, wherever it stands") {
    exception_policy rules;
    rules.on<std::exception>().retry();
    rules.on<bad_address>().dead_letter();
    rules.on<smtp_error>().redeliver();
    const auto table = table_of(rules);
    CHECK(rule_for(table, bad_address()) == 1);
    CHECK(rule_for(table, smtp_error()) == 2);
    CHECK(rule_for(table, std::logic_error("bug")) == 0);
}

TEST_CASE("a predicate goes before none, and the first declared before the next") {
    exception_policy rules;
    rules.on<smtp_error>().dead_letter();
    rules.on<smtp_error>([](const smtp_error& e) { return e.code == 421; }).retry();
    rules.on<smtp_error>([](const smtp_error& e) { return e.transient(); }).redeliver();
    const auto table = table_of(rules);
    CHECK(rule_for(table, smtp_error(421)) == 1);
    CHECK(rule_for(table, smtp_error(451)) == 2);
    CHECK(rule_for(table, smtp_error(500)) == 0);
}

TEST_CASE("a more derived type goes before a predicate on its base") {
    exception_policy rules;
    rules.on<smtp_error>([](const smtp_error&) { return true; }).retry();
    rules.on<bad_address>().dead_letter();
    CHECK(rule_for(table_of(rules), bad_address()) == 1);
}

TEST_CASE("a predicate that says no leaves the error to the next best rule") {
    exception_policy rules;
    rules.on<std::runtime_error>().retry();
    rules.on<bad_address>([](const bad_address&) { return false; }).discard();
    CHECK(rule_for(table_of(rules), bad_address()) == 0);
    exception_policy only;
    only.on<bad_address>([](const bad_address&) { return false; }).discard();
    CHECK(rule_for(table_of(only), bad_address()) == -1);
}

TEST_CASE("a predicate is asked only when its rule would win") {
    int asked = 0;
    exception_policy rules;
    rules.on<smtp_error>([&](const smtp_error&) { return ++asked > 0; }).retry();
    rules.on<bad_address>().dead_letter();
    const auto table = table_of(rules);
    CHECK(rule_for(table, bad_address()) == 1);
    CHECK(asked == 0);
    CHECK(rule_for(table, smtp_error()) == 0);
    CHECK(asked == 1);
}

TEST_CASE("of two bases that are no base of each other, a predicate and then the declaration decide") {
    exception_policy rules;
    rules.on<right>().retry();
    rules.on<left>().redeliver();
    CHECK(rule_for(table_of(rules), both()) == 0);
    rules.on<left>([](const left&) { return true; }).discard();
    CHECK(rule_for(table_of(rules), both()) == 2);
    rules.on<more_right>([](const more_right&) { return true; }).discard(); // is no matter here
    CHECK(rule_for(table_of(rules), both()) == 2);
}

TEST_CASE("a base that cannot be caught is not matched either") {
    exception_policy rules;
    rules.on<left>().retry();
    rules.on<twice_a>().discard();
    const auto table = table_of(rules);
    CHECK(rule_for(table, twice_a()) == 1);
    CHECK(rule_for(table, twice()) == 1);
    exception_policy base;
    base.on<left>().retry();
    CHECK(rule_for(table_of(base), twice()) == -1);
}

TEST_CASE("the same on<E>() without a predicate takes the place of the earlier one") {
    exception_policy rules;
    rules.on<smtp_error>().retry();
    rules.on<smtp_error>([](const smtp_error& e) { return !e.transient(); }).discard();
    rules.on<smtp_error>().dead_letter();
    REQUIRE(rules.rules().size() == 2);
    CHECK(rules.rules()[0].is_terminal());
    CHECK(rule_for(table_of(rules), smtp_error(500)) == 1);
    CHECK(rule_for(table_of(rules), smtp_error()) == 0);
}

TEST_CASE("default_() takes the place of an earlier one, and takes what is no exception class") {
    exception_policy rules;
    rules.default_().retry().then_redeliver();
    rules.default_().retry(5);
    REQUIRE(rules.rules().size() == 1);
    CHECK(rules.rules()[0].retry->max_attempts == 5);
    CHECK_FALSE(rules.rules()[0].redeliver);
    CHECK(rule_for(table_of(rules), 42) == 0);
    CHECK(rule_for(table_of(rules), std::string("text")) == 0);
}

TEST_CASE("default_() comes last, also after std::exception") {
    exception_policy rules;
    rules.default_().retry();
    rules.on<std::exception>().discard();
    CHECK(rule_for(table_of(rules), std::logic_error("bug")) == 1);
}

TEST_CASE("a code is matched in an exception and in what is returned") {
    exception_policy rules;
    rules.on(std::errc::connection_reset).retry();
    rules.on(errc::unavailable, errc::overloaded).redeliver();
    const auto table = table_of(rules);
    const auto code = std::make_error_code(std::errc::connection_reset);
    CHECK(rule_for(table, reset()) == 0);
    CHECK(rule_for_returned(table, code) == 0);
    CHECK(rule_for_returned(table, std::expected<int, std::error_code>(std::unexpected(code))) == 0);
    CHECK(rule_for(table, std::system_error(ECONNRESET, std::system_category())) == 0);
    CHECK(rule_for(table, failed({errc::overloaded, "x", {}})) == 1);
    CHECK(rule_for(table, std::system_error(make_error_code(errc::unavailable))) == 1);
    CHECK(rule_for_returned(table, result<int>(fail(errc::unavailable, "x"))) == 1);
    CHECK(rule_for_returned(table, std::make_error_code(std::errc::timed_out)) == -1);
    CHECK(rule_for(table, std::runtime_error("has none")) == -1);
}

TEST_CASE("a std::error_code is matched exactly, a std::errc by what it means") {
    exception_policy exact;
    exact.on(std::error_code(ECONNRESET, std::system_category())).retry();
    CHECK(rule_for(table_of(exact), std::system_error(ECONNRESET, std::system_category())) == 0);
    CHECK(rule_for(table_of(exact), reset()) == -1); // generic
}

TEST_CASE("a rule on a code goes before one on what carries it, but not before a more derived type") {
    exception_policy rules;
    rules.on<std::system_error>().dead_letter();
    rules.on(std::errc::connection_reset).retry();
    CHECK(rule_for(table_of(rules), reset()) == 1);
    CHECK(rule_for(table_of(rules), network_error(std::make_error_code(std::errc::connection_reset))) == 1);
    rules.on<network_error>().discard();
    CHECK(rule_for(table_of(rules), network_error(std::make_error_code(std::errc::connection_reset))) == 2);
    CHECK(rule_for(table_of(rules), reset()) == 1);
}

TEST_CASE("a code that is declared again leaves its earlier rule") {
    exception_policy rules;
    rules.on(errc::unavailable, errc::overloaded).retry();
    rules.on(errc::unavailable).discard();
    REQUIRE(rules.rules().size() == 2);
    CHECK(rule_for(table_of(rules), failed({errc::unavailable, "x", {}})) == 1);
    CHECK(rule_for(table_of(rules), failed({errc::overloaded, "x", {}})) == 0);
    rules.on(errc::overloaded).dead_letter();
    REQUIRE(rules.rules().size() == 2);
    CHECK(rules.rules()[0].then == exception_rule::ending::discard);
}

TEST_CASE("what is returned is judged like the exception that would carry it") {
    exception_policy rules;
    rules.on<failed>([](const failed& e) { return e.what_failed().message == "from the service"; }).retry();
    rules.on<std::system_error>().redeliver();
    rules.default_().discard();
    const auto table = table_of(rules);
    CHECK(rule_for_returned(table, result<void>(fail(errc::unavailable, "from the service"))) == 0);
    CHECK(rule_for_returned(table, result<void>(fail(errc::unavailable, "other"))) == 2);
    CHECK(rule_for_returned(table, std::make_error_code(std::errc::timed_out)) == 1);
    const std::expected<int, std::string> without_code = std::unexpected("text");
    CHECK(rule_for_returned(table, without_code) == 2);
    CHECK(table.find(failure::refused(errc::timed_out)) == 2);
}

TEST_CASE("cancellation and non_retryable_error are taken only by a rule that names them") {
    exception_policy rules;
    rules.on<std::exception>().retry();
    rules.on<failed>().retry();
    rules.default_().retry();
    const auto table = table_of(rules);
    CHECK(rule_for(table, non_retryable_error("no")) == -1);
    CHECK(rule_for(table, operation_cancelled()) == -1);
    CHECK(rule_for_returned(table, result<void>(fail(errc::cancelled, "stop"))) == -1);

    rules.on<own_cancel>().discard();
    CHECK(rule_for(table_of(rules), own_cancel()) == 3);
    CHECK(rule_for(table_of(rules), operation_cancelled()) == -1);
    rules.on<non_retryable_error>().discard();
    CHECK(rule_for(table_of(rules), non_retryable_error("no")) == 4);
    rules.on(errc::cancelled).discard();
    CHECK(rule_for(table_of(rules), operation_cancelled()) == 5);
    CHECK(rule_for_returned(table_of(rules), result<void>(fail(errc::cancelled, "stop"))) == 5);
}

TEST_CASE("a table without rules takes nothing") {
    CHECK(rule_for(exception_table(), smtp_error()) == -1);
    CHECK(rule_for(table_of({}), smtp_error()) == -1);
}
