// Consumer, transport, bus, host: which of them counts.
#include "catch.hpp"
#include "exception_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::bad_address;
using test::rule_for;
using test::smtp_error;

namespace {

exception_policy with_default(int retries) {
    exception_policy made;
    made.default_().retry(retries);
    return made;
}
// Tells scopes apart by how often they retry; 0 = no rule.
template <class E>
int retries_for(const exception_table& table, E thrown) {
    const int rule = rule_for(table, std::move(thrown));
    return rule < 0 ? 0 : table.rules()[static_cast<std::size_t>(rule)].rule.retry->max_attempts;
}

const exception_policy consumer = with_default(1), transport = with_default(2), bus = with_default(3),
                       host = with_default(4);

} // namespace

TEST_CASE("the innermost scope that is there counts") {
    CHECK(retries_for(resolve({&consumer, &transport, &bus, &host}), 42) == 1);
    CHECK(retries_for(resolve({nullptr, &transport, &bus, &host}), 42) == 2);
    CHECK(retries_for(resolve({.bus = &bus, .host = &host}), 42) == 3);
    CHECK(retries_for(resolve({.host = &host}), 42) == 4);
    CHECK(retries_for(resolve(exception_scopes{}), 42) == 0);
}

TEST_CASE("it replaces the others whole") {
    exception_policy narrow;
    narrow.on<bad_address>().retry(9);
    const auto table = resolve({.consumer = &narrow, .host = &host});
    CHECK(retries_for(table, bad_address()) == 9);
    CHECK(retries_for(table, smtp_error()) == 0);
    CHECK(table.rules().size() == 1);
}

TEST_CASE("a scope without rules is as if it were not there") {
    const exception_policy empty;
    CHECK(retries_for(resolve({.consumer = &empty, .host = &host}), 42) == 4);
}

TEST_CASE("inherit() leaves what it does not take to the next scope") {
    exception_policy narrow;
    narrow.on<bad_address>().retry(9);
    narrow.inherit();
    const auto table = resolve({&narrow, &transport, &bus, &host});
    CHECK(retries_for(table, bad_address()) == 9);
    CHECK(retries_for(table, smtp_error()) == 2);
    CHECK(table.rules().size() == 2); // the transport does not inherit in its turn
    CHECK(table.rules()[0].where == "consumer");
    CHECK(table.rules()[1].where == "transport");
}

TEST_CASE("own rules go before inherited ones, even those on a more derived type") {
    exception_policy own, outer;
    own.on<std::exception>().retry(1);
    own.inherit();
    outer.on<bad_address>().retry(2);
    outer.default_().retry(3);
    const auto table = resolve({.consumer = &own, .bus = &outer});
    CHECK(retries_for(table, bad_address()) == 1);
    CHECK(retries_for(table, 42) == 3);
}

TEST_CASE("inheritance goes on as far as it is said, over scopes that are not there") {
    exception_policy a, b;
    a.on<bad_address>().retry(7);
    a.inherit();
    b.on<smtp_error>().retry(8);
    b.inherit();
    const auto table = resolve({.consumer = &a, .bus = &b, .host = &host});
    CHECK(retries_for(table, bad_address()) == 7);
    CHECK(retries_for(table, smtp_error()) == 8);
    CHECK(retries_for(table, 42) == 4);
}

TEST_CASE("the total of attempts is that of the innermost that counts and gives one") {
    exception_policy inherits = with_default(1), capped = with_default(1), outer = with_default(1), only_a_total;
    inherits.inherit();
    capped.max_total_attempts(7).inherit();
    outer.max_total_attempts(20);
    only_a_total.max_total_attempts(5);
    CHECK(resolve({.host = &host}).max_total_attempts() == 100);
    CHECK(resolve({.consumer = &inherits, .host = &outer}).max_total_attempts() == 20);
    CHECK(resolve({.consumer = &capped, .host = &outer}).max_total_attempts() == 7);
    CHECK(resolve({.consumer = &consumer, .host = &outer}).max_total_attempts() == 100); // replaced whole
    const auto table = resolve({.consumer = &only_a_total, .host = &host});
    CHECK(table.max_total_attempts() == 5);
    CHECK(retries_for(table, 42) == 4);
}

TEST_CASE("a table keeps its rules when the policies are gone or change") {
    auto policy = std::make_unique<exception_policy>(with_default(6));
    const auto table = resolve({.consumer = policy.get()});
    policy->default_().retry(1);
    CHECK(retries_for(table, 42) == 6);
    policy.reset();
    CHECK(retries_for(table, 42) == 6);
}
