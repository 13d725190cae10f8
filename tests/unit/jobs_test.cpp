#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/json.hpp>
#include <holdfast/run_or_enqueue.hpp>

#include "catch.hpp"
#include "jobs_support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using Catch::Matchers::ContainsSubstring;
using test::job_bench;

namespace jobs_test {

struct plain {
    static constexpr job_options options{.name = "test.plain"};
    int number = 0;
};
BOOST_DESCRIBE_STRUCT(plain, (), (number))

struct detailed {
    static constexpr job_options options{.name = "test.detailed",
                                         .queue = "mail",
                                         .priority = 7,
                                         .attempts = 5,
                                         .restart = restart::never,
                                         .max_crashes = 1,
                                         .keep_for = 2h,
                                         .version = 3};
    std::string to;
};
BOOST_DESCRIBE_STRUCT(detailed, (), (to))

struct keyed {
    static constexpr job_options options{.name = "test.keyed"};
    std::string invoice;
    std::string unique_key() const { return "invoice-" + invoice; }
};
BOOST_DESCRIBE_STRUCT(keyed, (), (invoice))

struct careful {
    static constexpr restart restart_rule = restart::never;
};
struct inheriting : careful {
    static constexpr job_options options{.name = "test.inheriting"};
};
BOOST_DESCRIBE_STRUCT(inheriting, (), ())
struct nearer : careful {
    static constexpr job_options options{.name = "test.nearer"};
    static constexpr restart restart_rule = restart::allowed;
};
BOOST_DESCRIBE_STRUCT(nearer, (), ())

struct probed {
    static constexpr job_options options{.name = "test.probed", .restart = restart::probe};
};
BOOST_DESCRIBE_STRUCT(probed, (), ())

// Knows which of its kind are alive.
struct living {
    static constexpr job_options options{.name = "test.living", .restart = restart::probe};
    static inline std::set<const living*> all;
    living() { all.insert(this); }
    living(const living&) { all.insert(this); }
    living& operator=(const living&) = default;
    ~living() { all.erase(this); }
};

// Version 1 had grams.
struct parcel {
    static constexpr job_options options{.name = "test.parcel", .version = 2};
    int kilos = 0;
};

inline constexpr auto once = policy({.name = "once", .timeout = 1min});

} // namespace jobs_test

template <>
struct holdfast::codec<jobs_test::parcel> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const jobs_test::parcel& p) { return std::to_string(p.kilos); }
    static result<jobs_test::parcel> decode(std::string_view body, int version) {
        const int number = std::stoi(std::string(body));
        return jobs_test::parcel{version == 1 ? number / 1000 : number};
    }
};

template <>
struct holdfast::codec<jobs_test::living> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const jobs_test::living&) { return "alive"; }
    static result<jobs_test::living> decode(std::string_view) { return jobs_test::living(); }
};

using namespace jobs_test;

TEST_CASE("a job that says nothing gets the defaults, and its bytes say what they are") {
    job_bench b;
    const auto queued = b.get(b.client.enqueue(plain{42}));
    CHECK(queued.created);
    const job_view seen = b.look(queued.id);
    CHECK(seen.what == payload{"test.plain", 1, "application/json", R"({"number":42})"});
    CHECK(seen.queue == "default");
    CHECK(seen.priority == 0);
    CHECK(seen.max_attempts == 3);
    CHECK(seen.may_restart);
    CHECK(seen.state == job_state::pending);
    CHECK(seen.due_at == b.now());
}

TEST_CASE("a call's wish counts before the type's, the type's before the host's") {
    job_bench b(job_defaults{.attempts = 9, .max_crashes = 4, .restart = false});
    const job_view by_host = b.look(b.get(b.client.enqueue(plain{})).id);
    CHECK(by_host.max_attempts == 9);
    CHECK_FALSE(by_host.may_restart);

    const job_view by_type = b.look(b.get(b.client.enqueue(detailed{"a"})).id);
    CHECK(by_type.queue == "mail");
    CHECK(by_type.priority == 7);
    CHECK(by_type.max_attempts == 5);
    CHECK_FALSE(by_type.may_restart);
    CHECK(by_type.what.version == 3);

    auto calling = b.client.enqueue(
        detailed{"a"},
        {.queue = "vip", .priority = -1, .attempts = 1, .restart = restart::allowed, .extra = {{"h", "v"}}});
    const job_view by_call = b.look(b.get(std::move(calling)).id);
    CHECK(by_call.queue == "vip");
    CHECK(by_call.priority == -1);
    CHECK(by_call.max_attempts == 1);
    CHECK(by_call.may_restart);
    CHECK(by_call.extra.at("h") == "v");
}

TEST_CASE("crashes and retention follow the same order") {
    job_bench b(job_defaults{.max_crashes = 4});
    CHECK(b.client.make(plain{}, {})->max_crashes == 4);
    CHECK(b.client.make(detailed{}, {})->max_crashes == 1);
    CHECK_FALSE(b.client.make(plain{}, {})->keep_for);
    CHECK(b.client.make(detailed{}, {})->keep_for == 2h);
    CHECK(b.client.make(detailed{}, {.keep_for = 1min})->keep_for == 1min);
}

TEST_CASE("attempts other than 1 to 100 are refused, and nothing is written") {
    job_bench b;
    for (const int attempts : {0, -1, 101, 1'000'000})
        CHECK(b.refusal(b.client.enqueue(plain{}, {.attempts = attempts})) ==
              "job \"test.plain\": attempts is " + std::to_string(attempts) + ", it may be 1 to 100");
    CHECK(b.get(b.client.enqueue(plain{}, {.attempts = 100})).created);
    CHECK(b.get(b.client.enqueue(plain{}, {.attempts = 1})).created);
    CHECK(b.get(b.kept->jobs()->list({}, 10)).jobs.size() == 2);
}

TEST_CASE("a restart rule is inherited, and the nearest declaration wins") {
    job_bench b;
    CHECK_FALSE(b.client.make(inheriting{}, {})->may_restart);
    CHECK(b.client.make(nearer{}, {})->may_restart);
    CHECK(b.client.make(inheriting{}, {.restart = restart::allowed})->may_restart);
    CHECK_FALSE(b.client.make(nearer{}, {.restart = restart::never})->may_restart);
}

TEST_CASE("a call can ask for a restart rule that its type can follow, unset means the type's") {
    job_bench b;
    using enum restart;
    CHECK_FALSE(b.client.make(detailed{}, {.restart = unset})->may_restart);
    CHECK_FALSE(b.client.make(inheriting{}, {.restart = unset})->may_restart);
    CHECK(b.client.make(plain{}, {.restart = unset})->may_restart);
    CHECK_FALSE(b.client.make(probed{}, {.restart = never})->may_restart);

    CHECK(b.refusal(b.client.enqueue(plain{}, {.restart = probe})) ==
          "job \"test.plain\": .restart = restart::probe, but its type has no probe to ask");
    CHECK_FALSE(b.client.make(detailed{}, {.restart = probe}));
    CHECK(b.get(b.kept->jobs()->list({}, 10)).jobs.empty());

    const auto asked = b.client.make(probed{}, {.restart = probe});
    CHECK(asked->may_restart);
    CHECK_FALSE(asked->extra.contains(job_header::ask_no_probe));
    CHECK_FALSE(b.client.make(probed{}, {})->extra.contains(job_header::ask_no_probe));
    const auto unasked = b.client.make(probed{}, {.restart = allowed, .extra = {{"h", "v"}}});
    CHECK(unasked->may_restart);
    CHECK(unasked->extra.contains(job_header::ask_no_probe));
    CHECK(unasked->extra.at("h") == "v");
}

TEST_CASE("a coroutine may take its job by reference: the job lives until the handler has ended") {
    job_bench b;
    int seen_alive = 0;
    const auto handler = [&](const living& job, job_context& c) {
        return [](const living& mine, job_context& in, int& alive) -> task<void> {
            co_await in.sleep_for(1s);
            alive += living::all.contains(&mine) ? 1 : 0;
        }(job, c, seen_alive);
    };
    const auto probe = [&](const living& job, job_context& c) {
        return [](const living& mine, job_context& in, int& alive) -> task<happened> {
            co_await in.sleep_for(1s);
            alive += living::all.contains(&mine) ? 1 : 0;
            co_return happened::no;
        }(job, c, seen_alive);
    };
    const auto kind = job_type_of<living>(handler, probe);
    null_logger nowhere;
    job_context context({}, b.on, nowhere, {}, nullptr);
    CHECK(b.wait(kind->run({}, context)));
    CHECK(seen_alive == 1);
    CHECK(b.wait(kind->probe({}, context)) == happened::no);
    CHECK(seen_alive == 2);

    engine made(b.on, 1);
    made.add(once);
    const auto ended = b.wait(run_or_enqueue(b.client, made.policies().bind(once), handler, living()));
    REQUIRE(ended);
    CHECK_FALSE(ended->later);
    CHECK(seen_alive == 3);
    CHECK(living::all.empty());
}

TEST_CASE("a blocking handler is told of while it waits for a thread and when it has one, a coroutine is not") {
    struct notes final : handler_clock {
        void handler_waits() noexcept override { text += "waits "; }
        bool handler_begins() noexcept override {
            text += "begins ";
            return true;
        }
        std::string text;
    } told;
    job_bench b;
    null_logger nowhere;
    job_context context({.clock = &told}, b.on, nowhere, {}, nullptr);
    const payload what{"test.plain", 1, "application/json", R"({"number":1})"};
    const auto blocking = job_type_of<plain>([&](const plain&) { told.text += "runs"; });
    CHECK(b.wait(blocking->run(what, context)));
    CHECK(told.text == "waits begins runs");

    told.text.clear();
    const auto coroutine = job_type_of<plain>([](const plain&, job_context& c) { return c.sleep_for(1s); });
    CHECK(b.wait(coroutine->run(what, context)));
    CHECK(told.text.empty());
}

TEST_CASE("a job can be due after a while or at a time, by the store's clock") {
    job_bench b;
    const store_time began = b.now();
    const auto later = b.get(b.client.enqueue(plain{1}, {.after = 10min}));
    const auto then = b.get(b.client.enqueue(plain{2}, {.at = began + 5min}));
    CHECK(b.look(later.id).state == job_state::scheduled);
    CHECK(b.look(later.id).due_at == began + 10min);
    CHECK_FALSE(b.claim());
    b.on.advance(5min);
    CHECK(b.claim()->id == then.id);
    CHECK_FALSE(b.claim());
    b.on.advance(5min);
    CHECK(b.claim()->id == later.id);
    CHECK_THAT(b.refusal(b.client.enqueue(plain{}, {.after = 1min, .at = began})),
               ContainsSubstring("give either .after or .at, not both"));
}

TEST_CASE("a unique key lets one unfinished job through, and the next once that has ended") {
    job_bench b;
    const auto first = b.get(b.client.enqueue(plain{1}, {.unique_key = "k"}));
    const auto second = b.get(b.client.enqueue(plain{2}, {.unique_key = "k"}));
    CHECK(second == enqueued{first.id, false});
    CHECK(b.get(b.client.enqueue(plain{3}, {.unique_key = "other"})).created);
    CHECK(b.get(b.client.cancel(first.id)) == cancel_answer::cancelled);
    CHECK(b.get(b.client.enqueue(plain{4}, {.unique_key = "k"})).created);
}

TEST_CASE("a job that has a key of its own is unique by it, unless the call says otherwise") {
    job_bench b;
    CHECK(b.get(b.client.enqueue(keyed{"7"})).created);
    CHECK_FALSE(b.get(b.client.enqueue(keyed{"7"})).created);
    CHECK(b.get(b.client.enqueue(keyed{"8"})).created);
    CHECK(b.get(b.client.enqueue(keyed{"7"}, {.unique_key = "mine"})).created);
}

TEST_CASE("the same id twice is one job") {
    job_bench b;
    const identifier id = b.ids.next();
    CHECK(b.get(b.client.enqueue(plain{1}, {.id = id})) == enqueued{id, true});
    CHECK(b.get(b.client.enqueue(plain{2}, {.id = id})) == enqueued{id, false});
    CHECK(b.look(id).what.body == R"({"number":1})");
}

TEST_CASE("many jobs are one write: all of them, or none") {
    job_bench b;
    std::vector<plain> batch;
    for (int i = 0; i < 1000; ++i) batch.push_back({i});
    const auto queued = b.get(b.client.enqueue_all(batch, {.queue = "bulk"}));
    REQUIRE(queued.size() == 1000);
    CHECK(b.look(queued[999].id).what.body == R"({"number":999})");
    CHECK(b.look(queued[999].id).queue == "bulk");

    CHECK_THAT(b.refusal(b.client.enqueue_all(std::vector<plain>(2), {.unique_key = "k"})),
               ContainsSubstring("cannot share one id or unique key"));
    std::vector<detailed> mixed = {{"good"}, {"bad \xff"}};
    CHECK(b.refusal(b.client.enqueue_all(mixed)) ==
          "job \"test.detailed\" cannot be encoded: to: expected UTF-8 text, found bytes that are not");
    CHECK(b.get(b.kept->jobs()->list({.queue = "mail"}, 10)).jobs.empty());
    CHECK(b.get(b.client.enqueue_all(std::vector<plain>{})).empty());
}

TEST_CASE("a bulk of jobs with keys of their own is unique by each") {
    job_bench b;
    const auto queued = b.get(b.client.enqueue_all(std::vector<keyed>{{"1"}, {"2"}, {"1"}}));
    REQUIRE(queued.size() == 3);
    CHECK(queued[1].created);
    CHECK(queued[2] == enqueued{queued[0].id, false});
}

TEST_CASE("a job in a unit of work exists once that is committed, and never if it is not") {
    job_bench b;
    auto unit = b.get(b.kept->begin());
    const auto queued = b.get(b.client.enqueue(*unit, plain{1}));
    const auto many = b.get(b.client.enqueue_all(*unit, std::vector<plain>(2)));
    CHECK(std::get<job_absence>(b.get(b.client.get(queued.id))) == job_absence::never_known);
    b.get(unit->commit());
    CHECK(b.look(queued.id).state == job_state::pending);
    CHECK(b.look(many[1].id).state == job_state::pending);

    auto dropped = b.get(b.kept->begin());
    const auto lost = b.get(b.client.enqueue(*dropped, plain{2}));
    b.get(dropped->rollback());
    CHECK(std::get<job_absence>(b.get(b.client.get(lost.id))) == job_absence::never_known);
}

TEST_CASE("a continuation waits for its parent, and is cancelled with it") {
    job_bench b;
    const auto parent = b.get(b.client.enqueue(plain{1}));
    const auto child = b.get(b.client.enqueue(plain{2}, {.parent = parent.id}));
    CHECK(b.look(child.id).state == job_state::scheduled);
    const auto run = b.claim();
    REQUIRE(run->id == parent.id);
    CHECK_FALSE(b.claim());
    b.settle(*run);
    CHECK(b.claim()->id == child.id);

    const auto doomed = b.get(b.client.enqueue(plain{3}));
    const auto orphan = b.get(b.client.enqueue(plain{4}, {.parent = doomed.id}));
    CHECK(b.get(b.client.cancel(doomed.id)) == cancel_answer::cancelled);
    CHECK(b.look(orphan.id).state == job_state::cancelled);
}

TEST_CASE("cancelling answers what is the case") {
    job_bench b;
    const auto queued = b.get(b.client.enqueue(plain{}));
    const auto run = b.claim();
    CHECK(b.get(b.client.cancel(queued.id)) == cancel_answer::requested);
    b.settle(*run, settlement::kind::cancel);
    CHECK(b.get(b.client.cancel(queued.id)) == cancel_answer::already_ended);
    CHECK(b.get(b.client.cancel(b.ids.next())) == cancel_answer::not_found);
}

TEST_CASE("a job that cannot be decoded says which member is wrong") {
    const payload broken{"test.plain", 1, "application/json", R"({"number":"many"})"};
    CHECK_THROWS_WITH(holdfast::detail::decode_job<plain>(broken),
                      "\"test.plain\" version 1 does not decode: number: expected a whole number, found a string");
}

TEST_CASE("a codec may be told the version that was written") {
    const auto kilos = [](int version, std::string body) {
        return holdfast::detail::decode_job<parcel>({"test.parcel", version, "text/plain", std::move(body)}).kilos;
    };
    CHECK(kilos(2, "3") == 3);
    CHECK(kilos(1, "3000") == 3);
}
