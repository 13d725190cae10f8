#include <stdexcept>
#include <string>
#include <system_error>

#include <holdfast/rule.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct smtp_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct bad_address : smtp_error {
    bad_address() : smtp_error("no such mailbox") {}
};

bool is_even(const failure& f) {
    const int* value = f.value<int>();
    return value != nullptr && *value % 2 == 0;
}
bool is_negative(const failure& f) {
    const int* value = f.value<int>();
    return value != nullptr && *value < 0;
}
bool matches_any(const failure&) {
    return true;
}
bool throws_here(const failure&) {
    throw std::logic_error("the rule itself failed");
}

// How often `what` is called under a policy with these rules, and why it stopped.
template <class Function>
std::string run(const policy_options& options, Function what) {
    test::bench on;
    CHECK(on.made.catalog().add(options));
    int calls = 0;
    const auto ended = on.policies().try_execute(options.name, [&] { return what(++calls); });
    return std::to_string(calls) + " " + std::string(to_text(ended.stop_reason()));
}

policy_options with(std::initializer_list<rule> rules, int max_attempts = 3) {
    return {.name = "p", .retry = {.max_attempts = max_attempts, .delay = 0s}, .rules = rules};
}

int throw_smtp(int) {
    throw smtp_error("busy");
}
int throw_bad_address(int) {
    throw bad_address();
}
int throw_logic(int) {
    throw std::logic_error("bug");
}

} // namespace

static_assert(retry_on<smtp_error>(5).max_attempts == 5);
static_assert(retry_on(errc::timed_out) == retry_on(errc::timed_out));
static_assert(retry_on(errc::timed_out) != stop_on(errc::timed_out));

TEST_CASE("a rule on a code tells standard codes from Holdfast's own of the same number") {
    const auto code = static_cast<int>(errc::circuit_open);
    const std::error_code own = make_error_code(errc::circuit_open), standard{code, std::generic_category()};
    CHECK(retry_on(errc::circuit_open).applies_to(failure::returned(own)));
    CHECK_FALSE(retry_on(errc::circuit_open).applies_to(failure::returned(standard)));
    CHECK(retry_on(static_cast<std::errc>(code)).applies_to(failure::returned(standard)));
    CHECK_FALSE(retry_on(static_cast<std::errc>(code)).applies_to(failure::returned(own)));
}

TEST_CASE("a rule on a standard code also matches a system code that means the same") {
    const std::error_code system(static_cast<int>(std::errc::connection_reset), std::system_category());
    CHECK(retry_on(std::errc::connection_reset).applies_to(failure::returned(system)));
}

TEST_CASE("a rule on a code does not match a failure without one") {
    const auto thrown = std::make_exception_ptr(42);
    CHECK_FALSE(retry_on(errc::timed_out).applies_to(failure::thrown(thrown)));
    CHECK_FALSE(stop_on(std::errc::timed_out).applies_to(failure::returned(std::error_code())));
}

TEST_CASE("without rules every exception is retried") {
    CHECK(run(with({}), throw_smtp) == "4 exhausted");
    CHECK(run(with({}), [](int) -> int { throw 42; }) == "4 exhausted");
}

TEST_CASE("without rules a returned failure is not retried") {
    CHECK(run(with({}), [](int) -> result<int> { return fail(errc::unavailable, "x"); }) == "1 rule");
    CHECK(run(with({}), [](int) { return std::make_error_code(std::errc::timed_out); }) == "1 rule");
}

TEST_CASE("naming an exception type to retry means that others are not") {
    CHECK(run(with({retry_on<smtp_error>()}), throw_smtp) == "4 exhausted");
    CHECK(run(with({retry_on<smtp_error>()}), throw_bad_address) == "4 exhausted");
    CHECK(run(with({retry_on<smtp_error>()}), throw_logic) == "1 rule");
    CHECK(run(with({retry_on<bad_address>()}), throw_smtp) == "1 rule");
}

TEST_CASE("a rule on a code, or one that stops, leaves other exceptions to be retried") {
    CHECK(run(with({retry_on(errc::unavailable)}), throw_logic) == "4 exhausted");
    CHECK(run(with({stop_on<bad_address>()}), throw_smtp) == "4 exhausted");
    CHECK(run(with({stop_on<bad_address>()}), throw_bad_address) == "1 rule");
}

TEST_CASE("a stop rule beats a retry rule, wherever it stands") {
    CHECK(run(with({stop_on<bad_address>(), retry_on<smtp_error>()}), throw_bad_address) == "1 rule");
    CHECK(run(with({retry_on<smtp_error>(), stop_on<bad_address>()}), throw_bad_address) == "1 rule");
    CHECK(run(with({retry_on<smtp_error>(), stop_on<bad_address>()}), throw_smtp) == "4 exhausted");
}

TEST_CASE("exception, error_code and result with the same code get the same verdict") {
    const auto refused = std::make_error_code(std::errc::connection_refused);
    const auto run_all = [&](std::initializer_list<rule> rules, std::string expected) {
        CHECK(run(with(rules), [&](int) -> int { throw std::system_error(refused); }) == expected);
        CHECK(run(with(rules), [&](int) { return refused; }) == expected);
        CHECK(run(with(rules), [&](int) -> std::expected<int, std::error_code> { return std::unexpected(refused); }) ==
              expected);
    };
    run_all({retry_on(std::errc::connection_refused)}, "4 exhausted");
    run_all({stop_on(std::errc::connection_refused), retry_when(matches_any)}, "1 rule");
}

TEST_CASE("cancellation and non_retryable_error stop whatever the rules say") {
    CHECK(run(with({retry_when(matches_any)}), [](int) -> int { throw non_retryable_error("x"); }) == "1 rule");
    CHECK(run(with({retry_on<non_retryable_error>()}), [](int) -> int { throw non_retryable_error("x"); }) == "1 rule");
    CHECK(run(with({retry_when(matches_any)}), [](int) -> int { throw operation_cancelled(); }) == "1 cancelled");
}

TEST_CASE("a predicate sees good values, and can have them tried again") {
    CHECK(run(with({retry_when(is_even)}), [](int) { return 2; }) == "4 exhausted");
    CHECK(run(with({retry_when(is_even)}), [](int n) { return n == 3 ? 1 : 2; }) == "3 succeeded");
    CHECK(run(with({retry_when(is_even)}), throw_logic) == "4 exhausted");
    CHECK(run(with({stop_when(is_negative), retry_when(is_even)}), [](int) { return -2; }) == "1 rule");
}

TEST_CASE("the value that a predicate did not like is still given back at the end") {
    test::bench on;
    CHECK(on.made.catalog().add(with({retry_when(is_even)})));
    int calls = 0;
    const auto ended = on.policies().try_execute("p", [&] { return 2 * ++calls; });
    CHECK_FALSE(ended);
    REQUIRE(ended.has_value());
    CHECK(*ended == 8);
    CHECK(on.policies().execute("p", [] { return 10; }) == 10);
}

TEST_CASE("each rule counts its own retries") {
    const auto options = with({retry_on<std::logic_error>(1), retry_on<smtp_error>(5)}, unlimited);
    CHECK(run(options, throw_logic) == "2 exhausted");
    CHECK(run(options, throw_smtp) == "6 exhausted");
    // s l s s s s then s: the five of smtp_error are spent, one of logic_error did not reset them.
    CHECK(run(options, [](int n) -> int { return n == 2 ? throw_logic(n) : throw_smtp(n); }) == "7 exhausted");
    // The second logic_error is one too many, though smtp_error came in between.
    CHECK(run(options, [](int n) -> int { return n % 2 == 1 ? throw_logic(n) : throw_smtp(n); }) == "3 exhausted");
}

TEST_CASE("a rule cannot retry more often than the policy") {
    CHECK(run(with({retry_on<smtp_error>(50)}, 2), throw_smtp) == "3 exhausted");
    CHECK(run(with({retry_on<smtp_error>(0)}), throw_smtp) == "1 exhausted");
}

TEST_CASE("of several retry rules that match, the first is the one that counts") {
    CHECK(run(with({retry_on<bad_address>(1), retry_on<smtp_error>(3)}, unlimited), throw_bad_address) ==
          "2 exhausted");
    CHECK(run(with({retry_on<smtp_error>(3), retry_on<bad_address>(1)}, unlimited), throw_bad_address) ==
          "4 exhausted");
}

TEST_CASE("rules without retry retry nothing") {
    policy_options options{.name = "p", .rules = {retry_on<smtp_error>()}};
    CHECK(run(options, throw_smtp) == "1 exhausted");
}

TEST_CASE("what a predicate throws ends the execution and reaches the caller") {
    test::bench on;
    CHECK(on.made.catalog().add(with({retry_when(throws_here)})));
    int calls = 0;
    const auto ended = on.policies().try_execute("p", [&]() -> int { throw smtp_error(std::to_string(++calls)); });
    CHECK(calls == 1);
    CHECK(ended.stop_reason() == stop_reason::rule);
    CHECK(ended.error().message == "the rule itself failed");
    CHECK_THROWS_AS(on.policies().execute("p", [] { return 1; }), std::logic_error);
}

TEST_CASE("a fixed list keeps what fits and tells when it was given more") {
    fixed_list<int, 2> list{1, 2};
    CHECK(list.size() == 2);
    CHECK_FALSE(list.overflowed());
    list.push_back(3);
    CHECK(list.overflowed());
    CHECK(list.size() == 2);
    CHECK(list[1] == 2);
    CHECK(fixed_list<int, 2>{}.empty());
    CHECK(fixed_list<int, 2>::capacity() == 2);
}
