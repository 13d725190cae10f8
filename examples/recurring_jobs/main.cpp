// Recurring jobs in a fleet of two nodes over one store, two days in a moment of virtual time. A host does what `node`
// does here.
#include <chrono>
#include <iostream>
#include <list>
#include <set>
#include <stdexcept>
#include <string>

#include <holdfast/job_lab.hpp>
#include <holdfast/job_scheduler.hpp>
#include <holdfast/job_worker.hpp>
#include <holdfast/json.hpp>
#include <holdfast/schedule.hpp>
#include <holdfast/system_time_zones.hpp>

using namespace std::chrono_literals;

// [declare]
struct make_report {
    static constexpr holdfast::job_options options{.name = "report.make", .attempts = 5};
    std::string which;
};
BOOST_DESCRIBE_STRUCT(make_report, (), (which))

inline constexpr auto nightly = holdfast::schedule({
    .name = "report.nightly",
    .cron = "30 3 * * *",
    .time_zone = "+01:00",
}); // a wrong one does not compile, and the compiler says why

struct poll_inbox {
    static constexpr holdfast::job_options options{.name = "inbox.poll"};
    int limit = 50;
};
BOOST_DESCRIBE_STRUCT(poll_inbox, (), (limit))

inline constexpr auto polling = holdfast::schedule({
    .name = "inbox.polling",
    .every = 30min,
    .overlap = holdfast::overlap::skip,
    .misfire = holdfast::misfire::skip,
});
// [/declare]

namespace {

int reports = 0;
std::set<std::string, std::less<>> slots;

void once(std::string_view slot) {
    if (!slots.emplace(slot).second) throw std::logic_error("a slot was fired twice");
}

// [handle]
holdfast::task<void> handle(make_report job, holdfast::job_context& context) {
    once(std::string(*context.header(holdfast::schedule_header::slot)) + job.which); // what it is for, however late
    ++reports;
    co_return;
}
// [/handle]

int polls = 0;
holdfast::task<void> poll(poll_inbox, holdfast::job_context& context) {
    once(*context.header(holdfast::schedule_header::slot));
    ++polls;
    co_await context.sleep_for(20s);
}

struct node {
    // [node]
    node(holdfast::job_lab& lab, holdfast::time_zones& zones, holdfast::logger& log)
        : scheduler({lab.time(), lab.store(), lab.jobs(), log, zones}),
          worker({lab.time(), *lab.store().jobs(), kinds, log}) {
        scheduler.add(holdfast::recurring(nightly, make_report{"all"})).value();
        scheduler.add(holdfast::recurring(polling, poll_inbox{})).value();
        kinds.add<make_report>(handle).value();
        kinds.add<poll_inbox>(poll).value();
        scheduler.add_kinds(kinds).value(); // the worker fires the slots, too
        scheduler.start().value();
        worker.start().value();
    }
    // [/node]

    holdfast::job_registry kinds;
    holdfast::job_scheduler scheduler;
    holdfast::job_worker worker;
};

} // namespace

int main() {
    try {
        holdfast::job_lab lab;
        holdfast::system_time_zones zones;
        holdfast::null_logger log;
        std::list<node> fleet;
        for (int i = 0; i < 2; ++i) fleet.emplace_back(lab, zones, log);
        lab.time().advance(48h);

        // [inspect]
        const auto all = lab.wait(fleet.front().scheduler.inspect());
        for (const holdfast::schedule_status& each : all.value())
            std::cout << each.name << " (" << each.when << ") next " << holdfast::to_text(*each.next_due) << ", last "
                      << to_text(each.last_state.value()) << "\n";
        // [/inspect]
        for (node& each : fleet) {
            lab.wait(each.worker.stop());
            lab.wait(each.scheduler.stop());
        }
        std::cout << "two days, two nodes: " << reports << " reports, " << polls << " polls, no slot twice\n";
    } catch (const std::exception& e) {
        std::cerr << "failed: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
