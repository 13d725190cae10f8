#include <stdexcept>

#include "catch.hpp"
#include "jobs/job_rules.hpp"
#include "jobs/job_verdict.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using kind = settlement::kind;

namespace {

constexpr retry_options ten_seconds{.delay = 10s, .jitter = false};
constexpr job_options plain{.name = "work", .retry = ten_seconds};

// A kind that is never run, and its rules.
class kind_of final : public job_type {
public:
    kind_of(job_options how) : how_(how), table_(job_rules::table_of(*this, nullptr)) {}
    kind_of(job_options how, exception_policy rules, const exception_policy* of_host = nullptr)
        : how_(how), rules_(std::move(rules)), table_(job_rules::table_of(*this, of_host)) {}
    const job_options& options() const noexcept override { return how_; }
    holdfast::restart restart() const noexcept override { return how_.restart; }
    const exception_policy* rules() const noexcept override { return rules_ ? &*rules_ : nullptr; }
    task<result<void>> run(payload, job_context&) override { co_return result<void>{}; }
    task<happened> probe(payload, job_context&) override { co_return happened::unknown; }
    const exception_table& table() const noexcept { return table_; }

private:
    job_options how_;
    std::optional<exception_policy> rules_;
    exception_table table_;
};

job_verdict::circumstances about(const kind_of& kind) {
    return {.options = kind.options(), .rules = kind.table()};
}
job_verdict::circumstances about() {
    static const kind_of kind(plain);
    return about(kind);
}
void set_attempt(job_verdict::circumstances& in, int attempt) {
    in.so_far = {.redeliveries = attempt - 1, .calls = attempt};
}
template <class E>
job_verdict::verdict judged(const job_verdict::circumstances& in, E e) {
    random_series random(1);
    return job_verdict::after_throw(in, std::make_exception_ptr(std::move(e)), random);
}
template <class E>
settlement thrown(const job_verdict::circumstances& in, E e) {
    return judged(in, std::move(e)).ending;
}
settlement returned(const job_verdict::circumstances& in, error e) {
    random_series random(1);
    return job_verdict::after_error(in, e, random).ending;
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
    set_attempt(in, 3);
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 40s);
    CHECK(thrown(in, failed({errc::unavailable, "x", 7s})).when.delay == 7s);
    in.so_far.retry_after = 3s;
    CHECK(thrown(in, failed({errc::unavailable, "x", 7s})).when.delay == 3s);
    CHECK(returned(in, {errc::unavailable, "x", 7s}).when.delay == 3s);
}

TEST_CASE("a delay of the job's own making is kept within its limits, and one that throws is a dead letter") {
    const kind_of own({.name = "work",
                       .retry = {.max_delay = 1min, .delay_for = [](const failure&, int n) -> std::optional<duration> {
                                     return n == 1 ? -1s : 1h;
                                 }}});
    const kind_of throwing(
        {.name = "work", .retry = {.delay_for = [](const failure&, int) -> std::optional<duration> { throw 42; }}});
    auto in = about(own);
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 0s);
    set_attempt(in, 2);
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 1min);
    const auto bad = about(throwing);
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
    CHECK(job_verdict::when_killed(in, true, random).how == kind::cancel);
    in.cancelled = false;
    CHECK(job_verdict::when_stuck(in, random).how == kind::fail); // for it may still run
    CHECK(job_verdict::when_killed(in, true, random).error.type == "interrupted");
    in.stopping = false;
    CHECK(job_verdict::when_killed(in, true, random).how == kind::fail);
    CHECK(job_verdict::when_killed(in, false, random).how == kind::fail);
    CHECK(job_verdict::when_killed(in, false, random).error.type == "timed_out");
    in.may_restart = true;
    CHECK(job_verdict::when_stuck(in, random).how == kind::retry);
    CHECK(job_verdict::when_killed(in, true, random).how == kind::retry);
    CHECK(job_verdict::when_killed(in, false, random).how == kind::retry);
    in.stopping = true;
    CHECK(job_verdict::when_killed(in, true, random).how == kind::release);
}

TEST_CASE("a stop rule counts for timeouts and for returned failures too") {
    const kind_of strict({.name = "work", .rules = {stop_on(errc::timed_out), stop_on(errc::not_found)}});
    auto in = about(strict);
    CHECK(returned(in, {errc::not_found, "x", {}}).how == kind::dead_letter);
    CHECK(returned(in, {errc::unavailable, "x", {}}).how == kind::retry);
    in.timed_out = true;
    CHECK(thrown(in, operation_cancelled()).how == kind::dead_letter);
}

TEST_CASE("naming an exception type to retry means that others are not, what is returned is tried again all the same") {
    const kind_of named({.name = "work", .rules = {retry_on<std::logic_error>(), stop_on<std::out_of_range>()}});
    const auto in = about(named);
    CHECK(thrown(in, std::logic_error("x")).how == kind::retry);
    CHECK(thrown(in, std::out_of_range("x")).how == kind::dead_letter);
    CHECK(thrown(in, std::runtime_error("x")).how == kind::dead_letter);
    CHECK(returned(in, {errc::unavailable, "x", {}}).how == kind::retry);
}

TEST_CASE("the rules of a job: retry is in the run, redelivery is a later attempt") {
    exception_policy rules;
    rules.default_().retry({1s}).then_redeliver({1min, 5min});
    const kind_of ruled({.name = "work"}, rules);
    auto in = about(ruled);
    const auto first = judged(in, std::runtime_error("x"));
    REQUIRE(first.again);
    CHECK(first.again->after == 1s);
    CHECK(first.ending.how == kind::retry); // were the run to end now
    in.so_far.add(*first.again);
    CHECK_FALSE(judged(in, std::runtime_error("x")).again);
    CHECK(thrown(in, std::runtime_error("x")).how == kind::retry);
    CHECK(thrown(in, std::runtime_error("x")).when.delay == 1min);
    set_attempt(in, 3);
    CHECK(judged(in, std::runtime_error("x")).again); // a fresh cycle
    in.so_far.retries = {1};
    CHECK(thrown(in, std::runtime_error("x")).how == kind::dead_letter);
}

TEST_CASE("an attempt that timed out or is stuck comes again later, where its rule would retry it in the run") {
    exception_policy rules;
    rules.default_().retry({1s});
    const kind_of ruled({.name = "work"}, rules);
    auto in = about(ruled);
    in.timed_out = true;
    const auto late = judged(in, operation_cancelled());
    CHECK_FALSE(late.again);
    CHECK(late.ending.how == kind::retry);
    CHECK(late.ending.when.delay == 1s);
    random_series random(1);
    CHECK(job_verdict::when_stuck(in, random).how == kind::retry);
}

TEST_CASE("a discarded job is cancelled, and says by which rule") {
    exception_policy rules;
    rules.on<std::logic_error>().discard();
    const kind_of ruled({.name = "work"}, rules);
    const auto verdict = judged(about(ruled), std::logic_error("sent already"));
    CHECK(verdict.discarded);
    CHECK(verdict.ending.how == kind::cancel);
    CHECK(verdict.ending.error.message == "discarded by on<std::logic_error>(): sent already");
}

TEST_CASE("a job whose rules have tried it often enough says so") {
    exception_policy rules;
    rules.default_().retry(50, 0s);
    rules.max_total_attempts(2);
    const kind_of ruled({.name = "work"}, rules);
    auto in = about(ruled);
    set_attempt(in, 2);
    CHECK(thrown(in, std::runtime_error("x")).error.message ==
          "x; its rules would try it again, but allow no more than 2 attempts in all");
}

TEST_CASE("the rules of a job go before its options, those before the host's, those before the defaults") {
    exception_policy of_host, own, inheriting;
    of_host.default_().redeliver({7s});
    own.on<std::logic_error>().redeliver({3s});
    inheriting.on<std::logic_error>().redeliver({3s});
    inheriting.inherit();
    const auto wait = [](const kind_of& kind, auto e) {
        const auto ending = thrown(about(kind), e);
        return ending.how == kind::retry ? to_text(ending.when.delay) : "dead letter";
    };
    const std::logic_error logic("x");
    const std::runtime_error other("x");
    const job_options bare{.name = "work", .retry = {}};
    CHECK(wait(kind_of(bare, {}, &of_host), other) == "7s");
    CHECK(wait(kind_of(plain, {}, &of_host), other) == "10s");
    CHECK(wait(kind_of(bare, own, &of_host), logic) == "3s");
    CHECK(wait(kind_of(bare, own, &of_host), other) == "dead letter");
    CHECK(wait(kind_of(bare, inheriting, &of_host), other) == "7s");
    CHECK(wait(kind_of(plain, inheriting, &of_host), logic) == "3s");
    CHECK(wait(kind_of(plain, inheriting, &of_host), other) == "10s");
    of_host.inherit();
    of_host.default_().redeliver({8s});
    CHECK(wait(kind_of(bare, {}, &of_host), other) == "8s");
    exception_policy narrow;
    narrow.on<std::logic_error>().redeliver({9s});
    narrow.inherit();
    const auto by_default = thrown(about(kind_of(bare, {}, &narrow)), other);
    CHECK(by_default.how == kind::retry);
    CHECK((by_default.when.delay >= 30s && by_default.when.delay <= 60s));
}

TEST_CASE("rules in the options and others that replace them are refused") {
    exception_policy own;
    own.default_().retry();
    CHECK_FALSE(job_rules::check(kind_of(plain, own)));
    CHECK(job_rules::check(kind_of({.name = "work"}, own)));
    own.inherit();
    CHECK(job_rules::check(kind_of(plain, own)));
}

TEST_CASE("a rule that redelivers more often than a job has attempts is spoken of") {
    exception_policy own;
    own.default_().redeliver();
    const kind_of kind({.name = "work"}, own);
    CHECK(
        job_rules::lint(kind.options(), kind.table()) ==
        std::vector<std::string>{"job \"work\": default_() of the job redelivers 3 times, for which its 3 attempts are "
                                 "too few; .attempts = 4 would do"});
    const kind_of enough({.name = "work", .attempts = 4}, own);
    CHECK(job_rules::lint(enough.options(), enough.table()).empty());
    const kind_of by_options(plain);
    CHECK(job_rules::lint(by_options.options(), by_options.table()).empty());
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
