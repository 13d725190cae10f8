// When a job comes again: constants that the compiler checks.
//
//   inline constexpr auto nightly = holdfast::schedule({
//       .name = "report.nightly", .cron = "0 3 * * *", .time_zone = "Europe/Berlin"});
//   scheduler.add(holdfast::recurring(nightly, make_report{"all"}));
//
// Each slot is fired once in the fleet, however many nodes know the schedule and whatever dies when.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <holdfast/codec.hpp>
#include <holdfast/cron.hpp>
#include <holdfast/duration.hpp>
#include <holdfast/job.hpp>
#include <holdfast/payload.hpp>

namespace holdfast {

// A slot comes, and the run of an earlier one has not ended.
enum class overlap : unsigned char {
    skip,       // this slot is left out
    queue,      // it waits for the other's end, however that ends
    concurrent, // both run
};

// Slots that nobody could fire in time: the fleet was down, the queue was paused or had no room.
enum class misfire : unsigned char {
    fire_once, // one run stands for all of them
    skip,      // they are left out
    catch_up,  // each is fired, oldest first; of many only the latest max_catch_up
};

constexpr std::string_view to_text(overlap o) noexcept {
    switch (o) {
    case overlap::skip: return "skip";
    case overlap::queue: return "queue";
    case overlap::concurrent: return "concurrent";
    }
    return "unknown";
}
constexpr std::string_view to_text(misfire m) noexcept {
    switch (m) {
    case misfire::fire_once: return "fire_once";
    case misfire::skip: return "skip";
    case misfire::catch_up: return "catch_up";
    }
    return "unknown";
}

// One of cron, every, after_each; at_start with it or alone.
struct schedule_options {
    std::string_view name{};              // what stores call it: keep it when the code around it changes
    std::string_view cron{};              // see cron_expression
    std::optional<duration> every{};      // fixed rate: at whole multiples of it since 1970-01-01 UTC
    std::optional<duration> after_each{}; // fixed delay: that long after the end of the run before, failed or not
    bool at_start = false;                // also when a scheduler starts, unless a slot was due in the minute before
    std::string_view time_zone{};         // of cron: "Europe/Berlin", "+02:00"; UTC
    holdfast::overlap overlap = overlap::skip;
    holdfast::misfire misfire = misfire::fire_once;
    int max_catch_up = 100;                           // slots that one moment may fire, at most: 1 to 1000
    duration misfire_after = std::chrono::minutes{1}; // later than that is missed
    bool per_node = false; // every node fires for itself, and runs it itself: queue "<queue>@<node>"
};

// Every rule that a schedule must keep. Throws invalid_schedule; in a constant expression that is a compile error which
// quotes the sentence. Whether there is such a time zone, only the machine that runs it can tell.
constexpr void check(const schedule_options& o) {
    if (o.name.empty()) throw invalid_schedule("a schedule needs a name: .name = \"report.nightly\"");
    if (o.name.size() > 128) throw invalid_schedule("a schedule's name has at most 128 characters");
    for (const char c : o.name) {
        const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '_' || c == '.';
        if (!good) throw invalid_schedule("a schedule's name is made of letters, digits, '-', '_' and '.'");
    }
    const int given = (o.cron.empty() ? 0 : 1) + (o.every ? 1 : 0) + (o.after_each ? 1 : 0);
    if (given > 1) throw invalid_schedule("a schedule has one of .cron, .every and .after_each, not several");
    if (given == 0 && !o.at_start)
        throw invalid_schedule("a schedule says when: .cron, .every, .after_each or .at_start");
    if (!o.cron.empty()) static_cast<void>(cron_expression(o.cron));
    if (!o.time_zone.empty() && o.cron.empty()) throw invalid_schedule("only a schedule with .cron has a .time_zone");
    constexpr duration least = std::chrono::seconds{1};
    if (o.every && *o.every < least) throw invalid_schedule(".every must be at least 1s");
    if (o.after_each && *o.after_each < least) throw invalid_schedule(".after_each must be at least 1s");
    if (o.after_each && (o.overlap != overlap::skip || o.misfire != misfire::fire_once))
        throw invalid_schedule("with .after_each nothing overlaps and nothing is missed: drop .overlap and .misfire");
    if (o.misfire == misfire::catch_up && o.overlap == overlap::skip)
        throw invalid_schedule("misfire::catch_up needs overlap::queue or overlap::concurrent: with overlap::skip all "
                               "but the first would be left out");
    if (o.max_catch_up < 1 || o.max_catch_up > 1000) throw invalid_schedule(".max_catch_up must be 1 to 1000");
    if (o.misfire_after <= duration::zero()) throw invalid_schedule(".misfire_after must be longer than 0");
}

// A checked constant. Only a constant expression makes one, so its texts live as long as the program.
class schedule {
public:
    consteval schedule(const schedule_options& options) : options_(options) { check(options); }

    constexpr std::string_view name() const noexcept { return options_.name; }
    constexpr const schedule_options& options() const noexcept { return options_; }

private:
    schedule_options options_;
};

// What travels with the runs of a schedule; see job_context::header().
namespace schedule_header {
inline constexpr std::string_view name = "schedule";
inline constexpr std::string_view slot = "schedule-slot"; // "2026-11-16T03:00:00Z": what the run is for, however late
} // namespace schedule_header

// A schedule and the job that it fires, whatever its type. The texts must live as long as the scheduler.
struct recurring_job {
    schedule_options when;
    job_options type;
    holdfast::restart restart = restart::unset;
    payload what;
    std::optional<std::string> unique_key{}; // the job's own; only runs that may overlap keep it
};

// Throws failed(errc) when the job cannot be encoded.
template <class Job>
recurring_job recurring(const schedule& when, const Job& job) {
    result<std::string> body = codec<Job>::encode(job);
    if (!body)
        throw failed({body.error().code,
                      "schedule \"" + std::string(when.name()) + "\": job \"" + std::string(options_of<Job>().name) +
                          "\" cannot be encoded: " + body.error().message,
                      std::nullopt});
    recurring_job made{.when = when.options(), .type = options_of<Job>(), .restart = restart_of<Job>(), .what = {}};
    made.what = {std::string(options_of<Job>().name), options_of<Job>().version, std::string(codec<Job>::content_type),
                 std::move(*body)};
    if constexpr (detail::has_unique_key<Job>) made.unique_key = job.unique_key();
    return made;
}

} // namespace holdfast
