#include <holdfast/exception_explain.hpp>

#include "catch.hpp"
#include "exception_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::bad_address;
using test::smtp_error;
using test::table_of;

namespace {

template <class E>
std::string explained(const exception_table& table, E thrown) {
    const auto held = std::make_exception_ptr(std::move(thrown));
    return explain(table, failure::thrown(held));
}

exception_rule rule_of(const exception_policy& rules) {
    return rules.rules().front();
}

} // namespace

TEST_CASE("explain says which rule takes an error, and its schedule") {
    exception_policy rules, outer;
    rules.on<smtp_error>([](const smtp_error& e) { return e.transient(); }).retry().then_redeliver();
    rules.on<bad_address>().dead_letter();
    rules.on(std::errc::connection_reset, errc::unavailable).retry({100ms, 2s});
    rules.inherit();
    outer.on<std::logic_error>().discard();
    outer.on<std::bad_alloc>().redeliver(8, 2min, backoff::linear);
    const auto table = resolve({.consumer = &rules, .host = &outer});

    CHECK(explained(table, smtp_error()) == "holdfast::test::smtp_error: smtp 451\n"
                                            "is taken by on<holdfast::test::smtp_error>(predicate) of the consumer:\n"
                                            "  retry 3 times, after 200ms, 400ms, 800ms with jitter\n"
                                            "  redeliver 3 times, after 5m, 15m, 30m with jitter; each with 3 retries "
                                            "of its own\n"
                                            "  then dead letter\n"
                                            "  at most 16 calls, and 50m of waiting\n");
    CHECK(explained(table, bad_address()) == "holdfast::test::bad_address: smtp 550\n"
                                             "is taken by on<holdfast::test::bad_address>() of the consumer:\n"
                                             "  dead letter\n");
    CHECK(explained(table, failed({errc::unavailable, "the mail server", {}})) ==
          "holdfast::failed: the mail server\n"
          "is taken by on(generic: Connection reset by peer, holdfast: unavailable) of the consumer:\n"
          "  retry 2 times, after 100ms, 2s\n"
          "  then dead letter\n"
          "  at most 3 calls, and 2.1s of waiting\n");
    CHECK(explain(table, failure::refused(errc::unavailable)).starts_with("holdfast: unavailable\nis taken by on("));
    CHECK(explained(table, std::logic_error("bug")) == "std::logic_error: bug\n"
                                                       "is taken by on<std::logic_error>() of the host:\n"
                                                       "  discard\n");
    CHECK(explained(table, std::bad_alloc()) == "std::bad_alloc: std::bad_alloc\n"
                                                "is taken by on<std::bad_alloc>() of the host:\n"
                                                "  redeliver 8 times, after 2m, 4m, 6m, 8m, 10m, … 16m with jitter\n"
                                                "  then dead letter\n"
                                                "  at most 9 calls, and 1.2h of waiting\n");
    CHECK(explained(table, 42) == "int: an exception of type int\n"
                                  "is taken by no rule:\n"
                                  "  dead letter\n");
    CHECK(explained(table, non_retryable_error("no")) == "holdfast::non_retryable_error: no\n"
                                                         "is never retried, and no rule names it:\n"
                                                         "  dead letter\n");
}

TEST_CASE("explain tells of a predicate that throws") {
    exception_policy rules;
    rules.on<smtp_error>([](const smtp_error&) -> bool { throw std::logic_error("wrong"); }).retry();
    CHECK(explained(table_of(rules), smtp_error()) == "holdfast::test::smtp_error: smtp 451\n"
                                                      "makes its rule fail: wrong\n"
                                                      "  dead letter\n");
}

TEST_CASE("explain lists all rules, and what is left") {
    exception_policy rules;
    rules.on<bad_address>().discard();
    CHECK(explain(table_of(rules)) == "on<holdfast::test::bad_address>() of the consumer:\n"
                                      "  discard\n"
                                      "what no rule takes:\n"
                                      "  dead letter\n");
    rules.default_().retry(1);
    CHECK(explain(table_of(rules)) == "on<holdfast::test::bad_address>() of the consumer:\n"
                                      "  discard\n"
                                      "default_() of the consumer:\n"
                                      "  retry once, after 200ms with jitter\n"
                                      "  then dead letter\n"
                                      "  at most 2 calls, and 200ms of waiting\n");
}

TEST_CASE("the worst case counts calls and waits, up to the total of attempts") {
    exception_policy rules;
    rules.default_().retry({1s, 2s}).then_redeliver({1min, 2min});
    const auto all = worst_case(rule_of(rules), 100);
    CHECK(all.calls == 9);
    CHECK(all.waits == 3 * 3s + 3min);
    CHECK(all.slot_for == 3s);
    CHECK_FALSE(all.cut);
    const auto cut = worst_case(rule_of(rules), 5); // c 1s c 2s c 1min c 1s c
    CHECK(cut.calls == 5);
    CHECK(cut.waits == 4s + 1min);
    CHECK(cut.cut);
    const auto short_cut = worst_case(rule_of(rules), 2);
    CHECK(short_cut.waits == 1s);
    CHECK(short_cut.slot_for == 1s);
}

TEST_CASE("the worst case of huge numbers saturates") {
    exception_policy rules;
    rules.default_().retry(1'000'000'000, 24h * 365).then_redeliver(1'000'000'000, 24h * 365);
    const auto worst = worst_case(rule_of(rules), 2'000'000'000);
    CHECK(worst.calls == 2'000'000'000);
    CHECK(worst.waits == forever);
}

TEST_CASE("lint speaks of what multiplies, of slots that are kept, and of long lives") {
    exception_policy rules;
    rules.default_().retry().then_redeliver();
    CHECK(lint(table_of(rules)).empty());

    rules.default_().retry(5).then_redeliver();
    CHECK(lint(table_of(rules)) ==
          std::vector<std::string>{"default_() of the consumer makes up to 24 calls, for retries and redeliveries "
                                   "multiply; fewer with a longer delay are kinder to what is failing"});
    rules.max_total_attempts(20);
    CHECK(lint(table_of(rules)) ==
          std::vector<std::string>{"default_() of the consumer asks for more than 20 calls, which max_total_attempts "
                                   "does not let it make"});
    rules.default_().retry(4, 1min, backoff::constant);
    CHECK(lint(table_of(rules)) ==
          std::vector<std::string>{"default_() of the consumer keeps a slot for up to 4m while it waits between "
                                   "retries; redeliver() frees it"});
    rules.default_().redeliver({12h, 24h});
    CHECK(lint(table_of(rules)) ==
          std::vector<std::string>{"default_() of the consumer can take 1.5d until it is a dead letter"});
}
