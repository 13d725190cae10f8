// schedule_program <store plugin> [<key>=<value>…]
//
// A node for tests of crashes: a worker and a scheduler with two schedules, "beat" every second and "pause" a second after
// each run. SIGTERM stops it, exit code 0.
#include <chrono>
#include <csignal>
#include <string>

#include <holdfast/job_scheduler.hpp>
#include <holdfast/job_worker.hpp>
#include <holdfast/system_time_zones.hpp>

#include "jobs/notes.hpp"
#include "jobs/worker_lab.hpp"
#include "stores/support.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

task<result<void>> nap(job_context& c) {
    co_await sleep_for(c.runtime(), 50ms);
    co_return result<void>{};
}

int serve(int count, char** arguments) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    asio_runtime on{asio_options{}};
    const auto kept = test::open_store(arguments[1], on, test::settings_from(count, arguments, 2));
    test::value_of(sync_wait(on, kept->prepare()));

    test::kept_log log;
    system_time_zones zones;
    identifier_source ids;
    jobs client(*kept->jobs(), ids);
    job_scheduler scheduler({on, *kept, client, log, zones}, {.ensure_every = 1s});
    const schedule_options schedules[] = {
        {.name = "beat", .every = 1s, .overlap = overlap::concurrent, .misfire = misfire::catch_up},
        {.name = "pause", .after_each = 1s, .at_start = true},
    };
    job_registry kinds;
    for (const schedule_options& each : schedules) {
        const job_options type{.name = each.name, .max_crashes = 100, .keep_for = 0s};
        test::value_of(
            scheduler.add({.when = each, .type = type, .what = {std::string(each.name), 1, "text/plain", {}}}));
        test::value_of(
            kinds.add(std::make_unique<test::any_job>(type, [](payload, job_context& c) { return nap(c); })));
    }
    test::value_of(scheduler.add_kinds(kinds));
    job_worker worker({on, *kept->jobs(), kinds, log},
                      {.lease = 1s, .heartbeat = 200ms, .poll = 100ms, .sweep = 200ms});
    test::value_of(scheduler.start());
    test::value_of(worker.start());

    int number = 0;
    sigwait(&signals, &number);
    sync_wait(on, worker.stop());
    sync_wait(on, scheduler.stop());
    return 0;
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
