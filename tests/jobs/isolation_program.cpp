// isolation_program <configuration> [lost]
//
// lost: with a schedule in a time zone that is nowhere to be found. A worker process whose handlers run in processes of their own, and do there what handlers should not do. They write
// what they do into the files "began" and "done" of the folder it runs in: "<kind> <job> <run> <process>".
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <holdfast/codec.hpp>
#include <holdfast/host.hpp>

#include "notes.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

[[gnu::noinline]] void step_on_nothing(volatile int* where) {
    *where = 1;
}

class bad_address : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

constexpr retry_options soon{.delay = 50ms, .max_delay = 200ms};

// All carry a text.
struct told {
    std::string text;
};
struct fine : told {
    static constexpr job_options options{.name = "fine", .retry = soon, .isolate = true};
};
struct segfault : told {
    static constexpr job_options options{.name = "segfault", .retry = soon, .isolate = true};
};
struct patient_segfault : told {
    static constexpr job_options options{.name = "patient_segfault", .retry = soon, .isolate = true};
};
struct once_segfault : told {
    static constexpr job_options options{
        .name = "once_segfault", .retry = soon, .restart = restart::never, .isolate = true};
};
struct asked_segfault : told {
    static constexpr job_options options{
        .name = "asked_segfault", .retry = soon, .restart = restart::probe, .isolate = true};
};
struct aborts : told {
    static constexpr job_options options{.name = "aborts", .isolate = true};
};
struct uncaught : told {
    static constexpr job_options options{.name = "uncaught", .isolate = true};
};
struct leaves : told {
    static constexpr job_options options{.name = "leaves", .isolate = true};
};
struct boasts : told {
    static constexpr job_options options{.name = "boasts", .isolate = true};
};
struct hungry : told {
    static constexpr job_options options{.name = "hungry", .isolate = true};
};
struct endless : told {
    static constexpr job_options options{.name = "endless", .timeout = 200ms, .hard_deadline = 500ms, .isolate = true};
};
struct relapses : told { // its second try comes when its time is up
    static constexpr job_options options{
        .name = "relapses", .hard_deadline = 500ms, .policy = "later", .isolate = true};
};
struct deaf : told { // until it is cancelled, and beyond
    static constexpr job_options options{.name = "deaf", .isolate = true};
};
struct obedient : told {
    static constexpr job_options options{.name = "obedient", .isolate = true};
};
struct refuses : told {
    static constexpr job_options options{
        .name = "refuses", .retry = soon, .rules = {stop_on<bad_address>()}, .isolate = true};
};
struct flaky : told {
    static constexpr job_options options{.name = "flaky", .retry = soon, .policy = "twice", .isolate = true};
};
struct executes : told {
    static constexpr job_options options{.name = "executes", .isolate = true};
};
struct parent : told {
    static constexpr job_options options{.name = "parent", .retry = soon, .isolate = true};
};
struct beside : told { // in the worker itself
    static constexpr job_options options{.name = "beside", .retry = soon};
};

constexpr auto in_atlantis = schedule({.name = "daily", .cron = "0 3 * * *", .time_zone = "Atlantis/Poseidonis"});
constexpr auto later = policy({.name = "later", .retry = {.max_attempts = 1, .delay = 1s, .jitter = false}});
constexpr auto twice = policy({.name = "twice", .retry = {.max_attempts = 1, .delay = 1ms}});

std::string line(const job_context& c) {
    return std::string(c.type()) + " " + to_text(c.job_id()) + " " + c.run_id() + " " + std::to_string(::getpid());
}
void began(const job_context& c) {
    test::note("began", line(c));
}
void done(const job_context& c) {
    test::note("done", line(c));
}

task<void> run(fine job, job_context& c) {
    began(c);
    c.progress(40, "half way");
    co_await c.sleep_for(300ms);
    c.log().info("a word of " + job.text);
    std::cout << "printed by " << job.text << "\n";
    c.output(job.text + " " + c.idempotency_key() + " " + std::string(c.header("color").value_or("none")));
    done(c);
}

template <class Job>
void crash(Job, job_context& c) {
    began(c);
    step_on_nothing(nullptr);
    done(c);
}

void grow(hungry, job_context& c) {
    began(c);
    std::vector<std::unique_ptr<char[]>> eaten;
    for (;;) eaten.push_back(std::make_unique_for_overwrite<char[]>(16 << 20));
}

void spin(job_context& c) {
    began(c);
    for (volatile bool on = true; on;) {
    }
}

[[gnu::noinline]] void throw_much() {
    throw std::runtime_error(std::string(1 << 20, 'x'));
}

void fail_then_spin(job_context& c) {
    static bool failed_once = false;
    if (std::exchange(failed_once, true)) return spin(c);
    began(c);
    throw std::runtime_error("busy");
}

task<void> enqueue_others(parent job, job_context& c) {
    for (int i = 0; i < 20; ++i) {
        auto queued = co_await c.jobs().enqueue(beside{{job.text}});
        if (!queued) throw failed(queued.error());
        if (!queued->created) throw std::runtime_error("an id came twice");
    }
}

} // namespace

template <std::derived_from<told> Job>
struct holdfast::codec<Job> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const Job& job) { return job.text; }
    static result<Job> decode(std::string_view body) {
        Job job;
        job.text = body;
        return job;
    }
};

int main(int count, char** arguments) {
    if (count < 2) return 2;
    auto host = holdfast::host::from_file(arguments[1]);
    host.add(twice, later);
    host.add<fine>(&run);
    host.add<segfault>(&crash<segfault>);
    host.add<patient_segfault>(&crash<patient_segfault>);
    host.add<once_segfault>(&crash<once_segfault>);
    host.add<asked_segfault>(&crash<asked_segfault>, [](const asked_segfault& job, job_context&) {
        return job.text == "it happened" ? happened::yes : happened::unknown;
    });
    host.add<aborts>([](aborts, job_context& c) {
        began(c);
        std::abort();
    });
    host.add<uncaught>([](uncaught, job_context& c) {
        began(c);
        std::thread([] { throw std::runtime_error("thrown where nothing may be"); }).join();
    });
    host.add<boasts>([](boasts, job_context& c) {
        began(c);
        std::thread(&throw_much).join();
    });
    host.add<leaves>([](leaves, job_context& c) {
        began(c);
        ::_exit(7);
    });
    host.add<hungry>(&grow);
    host.add<endless>([](endless, job_context& c) { spin(c); });
    host.add<relapses>([](relapses, job_context& c) { fail_then_spin(c); });
    host.add<deaf>([](deaf, job_context& c) { spin(c); });
    host.add<obedient>([](obedient, job_context& c) -> task<void> {
        began(c);
        co_await c.sleep_for(1h);
    });
    host.add<refuses>([](const refuses&, job_context& c) {
        began(c);
        throw bad_address("no such street");
    });
    host.add<flaky>([](const flaky&, job_context& c) {
        began(c);
        throw std::runtime_error("busy");
    });
    host.add<executes>([](executes, job_context& c) {
        began(c);
        if (std::system("kill -s PIPE $$") != SIGPIPE) throw std::runtime_error("it ignores what would end it");
    });
    host.add<parent>(&enqueue_others);
    host.add<beside>([](const beside&, job_context& c) {
        began(c);
        done(c);
    });
    if (count > 2) host.add(recurring(in_atlantis, fine{}));
    return host.run();
}
