// worker_program <store plugin> <lease in ms> <concurrency> [<key>=<value>…]
//
// A worker process for tests of crashes and signals. Its handlers write what they do into the files "began" and "done"
// of the folder it runs in: "<kind> <job> <token> <process>"; what the store refuses is noted by noting_jobs.hpp.
// SIGTERM stops it, a second one at once; exit code 0 when no handler was left running.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <holdfast/job_worker.hpp>

#include "notes.hpp"
#include "noting_jobs.hpp"
#include "stores/support.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

std::string line(job_context& c) {
    return std::string(c.type()) + " " + to_text(c.job_id()) + " " + c.run_id() + " " + std::to_string(::getpid());
}

task<result<void>> quick(job_context& c) {
    test::note("began", line(c));
    test::note("done", line(c));
    c.output(c.run_id());
    co_return result<void>{};
}

task<result<void>> nap(job_context& c) {
    test::note("began", line(c));
    co_await sleep_for(c.runtime(), 300ms);
    test::note("done", line(c));
    co_return result<void>{};
}

// Longer than the leases of the tests.
task<result<void>> long_nap(job_context& c) {
    co_await sleep_for(c.runtime(), 2s);
    co_return result<void>{};
}

// Until the test lets this process go on; does not look at its token.
task<result<void>> wait(job_context& c) {
    test::note("began", line(c));
    const std::string go = "go." + std::to_string(::getpid());
    while (!test::exists(go)) co_await sleep_for(c.runtime(), 5ms);
    c.progress(77, "by " + std::to_string(::getpid()));
    if (c.stop_token().stop_requested()) test::note("told", line(c));
    test::note("done", line(c));
    c.output(c.run_id());
    co_return result<void>{};
}

task<result<void>> obedient(job_context& c) {
    test::note("began", line(c));
    co_await c.sleep_for(1h);
    co_return result<void>{};
}

// Has done its work, and dies before anybody can write that down.
task<result<void>> dies_at_end(job_context& c) {
    test::note("began", line(c));
    test::note("done", line(c));
    if (c.crash_count() == 0) ::kill(::getpid(), SIGKILL);
    co_return result<void>{};
}

// Handlers that take the whole process with them. Nothing is written after that.
task<result<void>> dies(job_context& c, void (*how)()) {
    test::note("began", line(c));
    co_await sleep_for(c.runtime(), 50ms);
    how();
    co_return result<void>{};
}
void segfault() {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV); // of this thread
}

// While it lives, this process may have no more than that beyond what it has now: the machine does not notice.
class memory_limit {
public:
    explicit memory_limit(rlim_t more) {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        ::getrlimit(RLIMIT_AS, &before_);
        const rlimit limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
        ::setrlimit(RLIMIT_AS, &limit);
    }
    ~memory_limit() { ::setrlimit(RLIMIT_AS, &before_); }
    memory_limit(const memory_limit&) = delete;
    memory_limit& operator=(const memory_limit&) = delete;

private:
    rlimit before_{};
};

// Until there is no more. In big pieces, so that those beside it still get small ones.
void take_all_memory() {
    const memory_limit limited(128u << 20);
    std::vector<std::vector<char>> taken;
    while (taken.size() < 1000) taken.emplace_back(16u << 20);
}
void take_all_memory_where_nothing_may_throw() noexcept {
    take_all_memory();
}
// As the system does it to one who takes too much.
void take_memory_until_killed() {
    try {
        take_all_memory();
    } catch (const std::bad_alloc&) {
        ::kill(::getpid(), SIGKILL);
    }
}

// It fails, as by any exception.
task<result<void>> hungry(job_context& c) {
    test::note("began", line(c));
    take_all_memory();
    co_return result<void>{};
}

// More than any store keeps.
task<result<void>> says_too_much(job_context& c) {
    c.output(std::string((10u << 20) + 1, 'x'));
    co_return result<void>{};
}

// Its heart beats, its token has fired, and it goes on until its runtime is gone. Another process gets it done.
task<result<void>> stuck(job_context& c) {
    test::note("began", line(c));
    while (c.attempt() == 1)
        if (co_await sleep_for(c.runtime(), 20ms) == sleep_end::stopped) co_return result<void>{};
    test::note("done", line(c));
    co_return result<void>{};
}

task<result<void>> throws_a_number(job_context& c) {
    test::note("began", line(c));
    throw 42;
    co_return result<void>{}; // makes it a coroutine
}

// Gives back what it was given.
task<result<void>> echo(payload what, job_context& c) {
    c.output(std::move(what.body));
    co_return result<void>{};
}

void add(job_registry& to, job_options how, task<result<void>> (*handler)(job_context&)) {
    test::value_of(
        to.add(std::make_unique<test::any_job>(how, [handler](payload, job_context& c) { return handler(c); })));
}

void add_deadly(job_registry& to, std::string_view name, void (*how)()) {
    test::value_of(to.add(std::make_unique<test::any_job>(job_options{.name = name},
                                                          [how](payload, job_context& c) { return dies(c, how); })));
}

// A body of three letters.
struct three {
    static constexpr job_options options{.name = "three"};
    std::string letters;
};

} // namespace

template <>
struct holdfast::codec<three> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const three& of) { return of.letters; }
    static result<three> decode(std::string_view body) {
        if (body.size() != 3) return fail(errc::invalid_argument, "expected three letters");
        return three{std::string(body)};
    }
};

namespace {

int serve(int count, char** arguments) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core); // some handlers crash on purpose
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    asio_runtime on{asio_options{}};
    const auto kept = test::open_store(arguments[1], on, test::settings_from(count, arguments, 4));
    test::value_of(sync_wait(on, kept->prepare()));

    job_registry kinds;
    add(kinds, {.name = "quick"}, &quick);
    add(kinds, {.name = "nap"}, &nap);
    add(kinds, {.name = "long_nap"}, &long_nap);
    add(kinds, {.name = "wait"}, &wait);
    add(kinds, {.name = "obedient"}, &obedient);
    add(kinds, {.name = "dies_at_end"}, &dies_at_end);
    add_deadly(kinds, "segfault", &segfault);
    add_deadly(kinds, "aborts", &std::abort);
    add_deadly(kinds, "out_of_memory", &take_all_memory_where_nothing_may_throw);
    add_deadly(kinds, "killed_for_memory", &take_memory_until_killed);
    add(kinds, {.name = "hungry", .retry = {.delay = 10ms}}, &hungry);
    add(kinds, {.name = "says_too_much"}, &says_too_much);
    add(kinds, {.name = "stuck", .retry = {.delay = 10ms}, .timeout = 100ms, .hard_deadline = 300ms}, &stuck);
    add(kinds, {.name = "throws_a_number", .retry = {.delay = 10ms}}, &throws_a_number);
    add(kinds, {.name = test::odd_name}, &quick);
    test::value_of(kinds.add(std::make_unique<test::any_job>(job_options{.name = "echo"}, &echo)));
    test::value_of(kinds.add<three>([](three, job_context&) {}));
    test::kept_log log;
    test::noting_jobs noting(*kept->jobs(), on);
    const duration lease = std::chrono::milliseconds(std::stoi(arguments[2]));
    job_worker worker({on, noting, kinds, log}, {.queues = {{.name = "default"}, {.name = std::string(test::odd_name)}},
                                                 .concurrency = std::stoi(arguments[3]),
                                                 .lease = lease,
                                                 .heartbeat = lease / 5,
                                                 .sweep = 200ms,
                                                 .progress_every = 1h, // with the completion: one that is refused
                                                                       // before it would be this worker's last word
                                                 .unknown_kind_delay = 100ms});
    test::value_of(worker.start());

    std::jthread stopping;
    for (int number = 0; sigwait(&signals, &number) == 0 && number != SIGUSR1;) {
        if (stopping.joinable()) {
            worker.stop_now();
            continue;
        }
        stopping = std::jthread([&] {
            sync_wait(on, worker.stop());
            ::kill(::getpid(), SIGUSR1);
        });
    }
    stopping = {};
    return worker.snapshot().running.empty() ? 0 : 3;
}

} // namespace

int main(int count, char** arguments) {
    try {
        return serve(count, arguments);
    } catch (const std::exception& e) {
        test::note("failed", e.what());
        return 1;
    }
}
