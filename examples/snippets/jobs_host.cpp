// What docs/jobs.md and docs/schedules.md quote of jobs in a host.
#include <chrono>
#include <iostream>
#include <string>

#include <holdfast/host.hpp>
#include <holdfast/json.hpp>
#include <holdfast/schedule.hpp>
#include <holdfast/sync_wait.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

namespace {

struct charge {
    static constexpr holdfast::job_options options{
        .name = "card.charge", .attempts = 1, .restart = holdfast::restart::probe};
    std::string card;
    int cents = 0;
};
BOOST_DESCRIBE_STRUCT(charge, (), (card, cents))

holdfast::result<void> take_money(const charge&) {
    return {};
}
holdfast::happened was_money_taken(const charge&) {
    return holdfast::happened::unknown;
}

struct make_report {
    static constexpr holdfast::job_options options{.name = "report.make"};
    std::string which;
};
BOOST_DESCRIBE_STRUCT(make_report, (), (which))

void handle(const make_report&) {}

inline constexpr auto nightly = holdfast::schedule({.name = "report.nightly", .cron = "30 3 * * *"});

} // namespace

// [versions]
struct parcel_v1 {
    int grams = 0;
};
BOOST_DESCRIBE_STRUCT(parcel_v1, (), (grams))

struct send_parcel {
    static constexpr holdfast::job_options options{.name = "parcel.send", .version = 2};
    double kilos = 0; // version 1 had grams
};
BOOST_DESCRIBE_STRUCT(send_parcel, (), (kilos))
// [/versions]

// [codec]
template <>
struct holdfast::codec<send_parcel> {
    static constexpr std::string_view content_type = "application/json";
    static result<std::string> encode(const send_parcel& parcel) { return to_json(parcel); }
    static result<send_parcel> decode(std::string_view body, int version) {
        if (version >= 2) return from_json<send_parcel>(body);
        const auto old = from_json<parcel_v1>(body);
        if (!old) return std::unexpected(old.error());
        return send_parcel{old->grams / 1000.0};
    }
};
// [/codec]

int main() {
    auto host = holdfast::host::from_text("[store]\nplugin = \"memory\"\n");
    // [probe]
    host.add<charge>(take_money, was_money_taken);
    // [/probe]
    // [schedule]
    host.add<make_report>(handle);
    host.add(holdfast::recurring(nightly, make_report{"all"}));
    // [/schedule]
    host.start();

    // [inspect]
    const auto schedules = sync_wait(host.runtime(), host.schedules());
    for (const holdfast::schedule_status& each : schedules.value())
        std::cout << each.name << " (" << each.when << ")\n";
    // [/inspect]
    check(schedules->size() == 1, "one schedule");

    // [worker]
    const holdfast::worker_snapshot now = host.worker();
    std::cout << now.running.size() << " running, " << now.prefetched << " held ahead, " << now.succeeded
              << " succeeded, " << now.stuck << " stuck\n";
    // [/worker]
    check(now.stuck == 0, "none is stuck");
    check(holdfast::decode<send_parcel>("{\"grams\":1500}", 1)->kilos == 1.5, "an old parcel is read");
    return 0;
}
