// Jobs through a host: declared, enqueued, run by its worker, drained when it stops.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <holdfast/codec.hpp>
#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

struct greet {
    static constexpr job_options options{.name = "greet", .queue = "mail", .attempts = 2, .retry = {.delay = 1ms}};
    std::string whom;
};
struct count {
    static constexpr job_options options{.name = "count"};
    std::string what;
};

} // namespace

template <>
struct holdfast::codec<greet> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const greet& g) { return g.whom; }
    static result<greet> decode(std::string_view body) { return greet{std::string(body)}; }
};
template <>
struct holdfast::codec<count> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const count& c) { return c.what; }
    static result<count> decode(std::string_view body) { return count{std::string(body)}; }
};

namespace {

// With the shipped plugins in reach; lines of `rest` begin at 5.
host desk(std::string_view rest = {}, std::shared_ptr<logger> log = std::make_shared<null_logger>()) {
    auto made = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n"
                                "[store]\nplugin = 'memory'\n" +
                                    std::string(rest),
                                "desk.toml");
    made.log_to(std::move(log));
    return made;
}

template <class T>
T get(host& on, task<result<T>> what) {
    auto answer = sync_wait(on.runtime(), std::move(what));
    if (!answer) throw failed(std::move(answer.error()));
    return std::move(*answer);
}

job_view look(host& on, const identifier& id) {
    return std::get<job_view>(get(on, on.jobs().get(id)));
}

// A job's end is written a moment after its handler's.
job_state state_once_ended(host& on, const identifier& id) {
    for (int i = 0; i < 2000; ++i) {
        const job_state now = look(on, id).state;
        if (is_final(now)) return now;
        std::this_thread::sleep_for(5ms);
    }
    return look(on, id).state;
}

} // namespace

TEST_CASE("a job that is enqueued is run by the host's own worker") {
    std::promise<std::string> greeted;
    auto host = desk();
    host.add<greet>([&](greet g) { greeted.set_value(g.whom); });
    host.start();
    const auto queued = get(host, host.jobs().enqueue(greet{"Ada"}));
    CHECK(queued.created);
    CHECK(greeted.get_future().get() == "Ada");
    CHECK(state_once_ended(host, queued.id) == job_state::succeeded);
    CHECK(host.worker().succeeded == 1);
}

TEST_CASE("rules are given with a job, and to the host for all jobs that have none") {
    exception_policy own, of_host;
    own.on<std::runtime_error>().retry({1ms, 1ms});
    own.inherit();
    of_host.on<std::logic_error>().discard();
    std::atomic<int> greeted = 0, counted = 0;
    auto host = desk();
    host.use(of_host);
    host.add<greet>(
        [&](greet) {
            ++greeted;
            throw std::runtime_error("busy");
        },
        own);
    host.add<count>([&](count) {
        ++counted;
        throw std::logic_error("counted already");
    });
    CHECK_THROWS_WITH(host.use(of_host), "the host has exception rules already: one policy is for all");
    host.start();
    CHECK_THROWS_WITH(host.use(of_host), ContainsSubstring("before start()"));
    const auto first = get(host, host.jobs().enqueue(greet{"Ada"}));
    const auto second = get(host, host.jobs().enqueue(count{"sheep"}));
    CHECK(state_once_ended(host, first.id) == job_state::dead_letter);
    CHECK(greeted == 3);
    CHECK(state_once_ended(host, second.id) == job_state::cancelled);
    CHECK(counted == 1);
    CHECK(host.worker().discarded == 1);
}

TEST_CASE("a coroutine handler that fails is tried again under the same job") {
    std::atomic<int> calls = 0;
    struct handler {
        static task<void> run(std::atomic<int>& counted, greet, job_context& context) {
            ++counted;
            co_await context.sleep_for(1ms);
            if (!context.last_attempt()) throw std::runtime_error("not yet");
        }
    };
    auto host = desk("[jobs]\npoll = '10ms'\n");
    host.add<greet>([&](greet g, job_context& c) { return handler::run(calls, std::move(g), c); });
    host.start();
    const auto queued = get(host, host.jobs().enqueue(greet{"Ada"}));
    CHECK(state_once_ended(host, queued.id) == job_state::succeeded);
    CHECK(calls == 2);
    CHECK(look(host, queued.id).history.size() == 2);
}

TEST_CASE("a host that does not work enqueues and leaves the rest to others") {
    std::atomic<int> calls = 0;
    auto host = desk("[jobs]\nwork = false\n");
    host.add<greet>([&](greet) { ++calls; });
    host.start();
    const auto queued = get(host, host.jobs().enqueue(greet{"Ada"}));
    CHECK(look(host, queued.id).state == job_state::pending);
    CHECK(host.worker().name.empty());
    CHECK(calls == 0);
}

TEST_CASE("a worker takes the queues that the configuration names, and no others") {
    std::promise<void> counted;
    auto log = std::make_shared<support::kept_log>();
    auto host = desk("[jobs]\nqueues = ['default']\nconcurrency = 7\nname = 'desk-1'\n", log);
    host.add<greet>([](greet) { FAIL("its queue was not asked for"); });
    host.add<count>([&](count) { counted.set_value(); });
    host.start();
    const auto left = get(host, host.jobs().enqueue(greet{"Ada"}));
    get(host, host.jobs().enqueue(count{"sheep"}));
    counted.get_future().wait();
    CHECK(look(host, left.id).state == job_state::pending);
    CHECK(log->has("info working on jobs from default as desk-1, 7 at a time"));
}

TEST_CASE("a schedule does not bring its queue to a worker that names others") {
    auto log = std::make_shared<support::kept_log>();
    auto host = desk("[jobs]\nqueues = ['default']\nname = 'desk-1'\n", log);
    host.add<greet>([](greet) { FAIL("its queue was not asked for"); });
    constexpr auto greeting = schedule({.name = "greeting", .every = std::chrono::hours{1}, .at_start = true});
    host.add(recurring(greeting, greet{"Ada"}));
    host.start();
    CHECK(log->has("info working on jobs from default as desk-1, 100 at a time"));
    CHECK(log->has(
        "info schedule \"greeting\" is fired by those who work on queue \"mail\", which is not among the queues "
        "of this process"));
}

TEST_CASE("a host that stops lets running jobs end and gives back what it has not begun") {
    std::promise<void> began;
    std::promise<void> go_on;
    auto wait = go_on.get_future().share();
    auto host = desk("[jobs]\nconcurrency = 1\n");
    host.add<count>([&, wait](count c) {
        if (c.what == "first") began.set_value();
        wait.wait();
    });
    host.start();
    const auto first = get(host, host.jobs().enqueue(count{"first"}));
    began.get_future().wait();
    const auto second = get(host, host.jobs().enqueue(count{"second"}));
    auto stopped = std::async(std::launch::async, [&] { host.stop(); });
    while (!host.worker().stopping) std::this_thread::sleep_for(1ms);
    go_on.set_value();
    stopped.get();
    CHECK(host.worker().succeeded == 1);
    CHECK(look(host, first.id).state == job_state::succeeded);
    const auto left = look(host, second.id);
    CHECK(left.state == job_state::pending);
    CHECK(left.attempts == 0);
}

TEST_CASE("a job that comes again is fired by the host, and the schedule can be looked at") {
    static constexpr schedule hourly({.name = "count.hourly", .every = 1h, .at_start = true});
    std::promise<std::string> counted;
    auto host = desk();
    host.add<count>([&](count c) { counted.set_value(c.what); });
    host.add(recurring(hourly, count{"sheep"}));
    host.start();
    CHECK(counted.get_future().get() == "sheep");
    const auto known = get(host, host.schedules());
    REQUIRE(known.size() == 1);
    CHECK(known.front().name == "count.hourly");
    CHECK(known.front().next_due.has_value());
}

TEST_CASE("the configuration may say when a job comes again, or that it does not") {
    static constexpr schedule hourly({.name = "count.hourly", .every = 1h});
    static constexpr schedule nightly({.name = "count.nightly", .cron = "0 3 * * *", .time_zone = "+01:00"});
    static constexpr schedule unwanted({.name = "count.never", .every = 1h});
    auto host = desk("[schedules.\"count.hourly\"]\ncron = '15 * * * *'\n"
                     "[schedules.\"count.nightly\"]\ntime_zone = '+02:00'\n"
                     "[schedules.\"count.never\"]\nenabled = false\n");
    host.add<count>([](count) {});
    host.add(recurring(hourly, count{"a"})).add(recurring(nightly, count{"b"})).add(recurring(unwanted, count{"c"}));
    host.start();
    const auto known = get(host, host.schedules());
    REQUIRE(known.size() == 2);
    CHECK(known[0].when == "15 * * * * UTC");
    CHECK(known[1].when == "0 3 * * * +02:00");
}

TEST_CASE("what is wrong in [schedules] is refused by name and line") {
    static constexpr schedule hourly({.name = "hourly", .every = 1h});
    const auto refusal = [](std::string_view text, bool works = true) {
        return support::message_of([&] {
            auto host = desk(text);
            if (!works) host.without_work();
            host.add<count>([](count) {});
            host.add(recurring(hourly, count{"a"}));
            host.start();
        });
    };
    CHECK(refusal("[schedules.hurly]\nevery = '2h'\n") ==
          "desk.toml:5: there is no schedule \"hurly\"; did you mean \"hourly\"?");
    CHECK(refusal("[schedules.hurly]\nevery = '2h'\n", false) ==
          "desk.toml:5: there is no schedule \"hurly\"; did you mean \"hourly\"?");
    CHECK(refusal("[schedules.hourly]\nevry = '2h'\n") ==
          "desk.toml:6: [schedules.hourly] has no key \"evry\"; did you mean \"every\"?");
    CHECK(refusal("[schedules.hourly]\nevery = '2h'\ncron = '* * * * *'\n") ==
          "desk.toml:5: [schedules.hourly]: a schedule has one of .cron, .every and .after_each, not several");
    CHECK_THAT(refusal("[schedules.hourly]\ncron = '99 * * * *'\n"),
               Catch::Matchers::StartsWith("desk.toml:5: [schedules.hourly]: "));
    CHECK(refusal("[schedules]\nevery = '2h'\n") ==
          "desk.toml:6: [schedules] has no key \"every\"; write it in [schedules.NAME]");
}

TEST_CASE("a host with jobs and no store says which section to write") {
    auto host = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n", "desk.toml");
    host.log_to(std::make_shared<null_logger>());
    host.add<greet>([](greet) {});
    CHECK_THAT(support::message_of([&] { host.start(); }), Catch::Matchers::ContainsSubstring("[store]"));
}

TEST_CASE("a type of job can be added once") {
    auto host = desk();
    host.add<greet>([](greet) {});
    CHECK_THAT(support::message_of([&] { host.add<greet>([](greet) {}); }),
               Catch::Matchers::ContainsSubstring("greet"));
}

TEST_CASE("what is wrong in [jobs] is refused by name and line") {
    const auto refusal = [](std::string_view text) { return support::message_of([&] { desk(text); }); };
    CHECK(refusal("[jobs]\nconcurency = 7\n") ==
          "desk.toml:6: [jobs] has no key \"concurency\"; did you mean \"concurrency\"?");
    CHECK(refusal("[jobs]\nattempts = 101\n") ==
          "desk.toml:6: [jobs] attempts: expected a whole number from 1 to 100, found \"101\"");
    CHECK(refusal("[jobs]\nlease = '30s'\nheartbeat = '30s'\n") ==
          "desk.toml:7: [jobs] heartbeat: expected a duration shorter than the lease, which is 30s, found \"30s\"");
    CHECK(refusal("[jobs]\nlease = '0s'\n") ==
          "desk.toml:6: [jobs] lease: expected a duration longer than 0, found \"0s\"");
    CHECK(refusal("[consumers]\nheartbeat = '2m'\n") ==
          "desk.toml:6: [consumers] heartbeat: expected a duration shorter than the lease, which is 1m, found \"2m\"");
    CHECK(refusal("[jobs.queue.mail]\nweight = 2\n") ==
          "desk.toml:5: there is no section [jobs.queue]; did you mean \"queues\"?");
    CHECK(refusal("[jobs.queues.mail]\nwieght = 2\n") ==
          "desk.toml:6: [jobs.queues.mail] has no key \"wieght\"; did you mean \"weight\"?");
    CHECK(refusal("[jobs.queues]\nmail = 2\n") ==
          "desk.toml:6: [jobs.queues] has no key \"mail\"; write [jobs.queues.NAME], or queues = [\"NAME\"] in [jobs]");
}

TEST_CASE("what is wrong in [jobs.isolation] is refused by name and line") {
    const auto refusal = [](std::string_view text) { return support::message_of([&] { desk(text); }); };
    CHECK(refusal("[jobs.isolation]\njobs = 'some'\n") ==
          "desk.toml:6: [jobs.isolation] jobs: expected \"asked\", \"all\" or \"none\", found \"some\"");
    CHECK(refusal("[jobs.isolation]\nprocesses = 0\n") ==
          "desk.toml:6: [jobs.isolation] processes: expected a whole number from 1 to 1000, found \"0\"");
    CHECK(refusal("[jobs.isolation]\nkill_aftr = '1s'\n") ==
          "desk.toml:6: [jobs.isolation] has no key \"kill_aftr\"; did you mean \"kill_after\"?");
}

TEST_CASE("a program with threads cannot isolate jobs, and is told what to do, unless the configuration says no") {
    std::promise<void> over;
    const std::jthread other([until = over.get_future()] { until.wait(); });
    const auto start = [](std::string_view rest) {
        auto host = desk(rest);
        host.add<count>([](count) {});
        host.start();
        return std::string("started");
    };
    CHECK_THAT(support::message_of([&] { start("[jobs.isolation]\njobs = 'all'\n"); }),
               Catch::Matchers::StartsWith("job \"count\" is to be isolated: ") &&
                   Catch::Matchers::ContainsSubstring(": start the host before anything that starts threads"));
    CHECK(start("[jobs.isolation]\njobs = 'none'\n") == "started");
    CHECK(start("") == "started");
    over.set_value();
}

TEST_CASE("a tool that only looks runs no jobs") {
    auto host = desk();
    host.add<greet>([](greet) { FAIL("it was to be looked at"); }).without_work().start();
    const auto queued = get(host, host.jobs().enqueue(greet{"Ada"}));
    CHECK(host.worker().name.empty());
    CHECK(look(host, queued.id).state == job_state::pending);
}
