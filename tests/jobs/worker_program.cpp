// worker_program <store plugin> <lease in ms> <concurrency> [<key>=<value>…]
//
// A worker process for tests of crashes and signals. Its handlers write what they do into the files "began" and "done"
// of the folder it runs in: "<kind> <job> <token> <process>". SIGTERM stops it, a second one at once; exit code 0 when
// no handler was left running.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <holdfast/job_worker.hpp>

#include "notes.hpp"
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

task<result<void>> segfault(job_context& c) {
    test::note("began", line(c));
    co_await sleep_for(c.runtime(), 50ms);
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV); // of this thread: nothing is written after it
    co_return result<void>{};
}

void add(job_registry& to, std::string_view name, task<result<void>> (*handler)(job_context&)) {
    test::value_of(to.add(std::make_unique<test::any_job>(job_options{.name = name},
                                                          [handler](payload, job_context& c) { return handler(c); })));
}

int serve(int count, char** arguments) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    asio_runtime on{asio_options{}};
    const auto kept = test::open_store(arguments[1], on, test::settings_from(count, arguments, 4));
    test::value_of(sync_wait(on, kept->prepare()));

    job_registry kinds;
    add(kinds, "quick", &quick);
    add(kinds, "nap", &nap);
    add(kinds, "wait", &wait);
    add(kinds, "obedient", &obedient);
    add(kinds, "dies_at_end", &dies_at_end);
    add(kinds, "segfault", &segfault);
    test::kept_log log;
    const duration lease = std::chrono::milliseconds(std::stoi(arguments[2]));
    job_worker worker({on, *kept->jobs(), kinds, log},
                      {.concurrency = std::stoi(arguments[3]), .lease = lease, .heartbeat = lease / 5, .sweep = 200ms});
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
