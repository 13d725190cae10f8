// `holdfast jobs retry|cancel|discard|purge`: changing jobs. Exit code 1 when one of those named was left as it is.
#include "jobs_change.hpp"

#include <algorithm>
#include <iostream>

#include <holdfast/duration.hpp>
#include <holdfast/job_matching.hpp>

#include "changes.hpp"
#include "jobs_store.hpp"
#include "jobs_text.hpp"
#include "json.hpp"
#include "text.hpp"

namespace holdfast::cli {

namespace {

constexpr int page_size = 500;

// One of the verbs that work on named jobs, or with --all on those that match.
struct change {
    std::string_view verb;                                              // "requeue"
    bool (*fits)(job_state);                                            // whether it can do something for such a job
    std::string_view fitting;                                           // those states, for people
    change_answer (*to_one)(jobs_store&, const identifier&);            // with the reason if it does nothing
    task<result<std::uint64_t>> (*to_matching)(job_store&, job_filter); // gives how many
};

std::uint64_t count_matching(jobs_store& in, const job_filter& filter,
                             std::optional<store_time> ended_by = std::nullopt) {
    std::uint64_t total = 0;
    std::string cursor;
    do {
        job_page page = in.get(in.jobs().list(filter, page_size, std::move(cursor)));
        cursor = std::move(page.next);
        total += static_cast<std::uint64_t>(std::ranges::count_if(
            page.jobs, [&](const job_view& each) { return !ended_by || (each.ended && *each.ended <= *ended_by); }));
    } while (!cursor.empty());
    return total;
}

std::string jobs_text(std::uint64_t count, job_state state) {
    return std::to_string(count) + " " + std::string(to_text(state)) + (count == 1 ? " job" : " jobs");
}

int all_matching(const change& what, const arguments& given) {
    const job_filter filter = filter_of(given);
    if (!filter.state || !what.fits(*filter.state))
        throw usage_error("--all needs a --state that this can be done to: " + std::string(what.fitting));
    jobs_store in(given);
    if (!given.has("--yes")) {
        const std::uint64_t count = count_matching(in, filter);
        return needs_yes(given, jobs_text(count, *filter.state) + " would be " + std::string(what.verb),
                         none_of(count, what.verb));
    }
    const std::uint64_t count = in.get(what.to_matching(in.jobs(), filter));
    if (given.has("--json")) std::cout << json_object().add(what.verb, std::to_string(count)).text() << "\n";
    else std::cout << what.verb << ": " << jobs_text(count, *filter.state) << "\n";
    return 0;
}

int run(const change& what, const arguments& given) {
    if (given.has("--all")) {
        if (!given.operands().empty()) throw usage_error("give either ids or --all, not both");
        return all_matching(what, given);
    }
    for (const std::string_view only_with_all : {"--state", "--queue", "--type"})
        if (given.has(only_with_all)) throw usage_error(std::string(only_with_all) + " needs --all");
    if (given.operands().empty()) throw usage_error("say which jobs: ids, or --all --state STATE");
    const auto ids = job_ids_of(given);
    jobs_store in(given);
    std::vector<change_answer> answers;
    for (const identifier& id : ids) answers.push_back(what.to_one(in, id));
    return report(answers, "jobs", given.has("--json"));
}

// The job, or why there is none.
std::variant<job_view, change_answer> find(jobs_store& in, const identifier& id) {
    job_lookup found = in.get(in.jobs().get(id));
    if (auto* job = std::get_if<job_view>(&found)) return std::move(*job);
    return change_answer{id, false, "job " + to_text(id) + ": " + to_text(std::get<job_absence>(found))};
}

change_answer cannot(const identifier& id, const std::string& why) {
    return {id, false, "job " + to_text(id) + " was left alone: " + why};
}

bool can_requeue(job_state s) {
    return is_final(s) && s != job_state::succeeded;
}
change_answer requeue_one(jobs_store& in, const identifier& id) {
    auto found = find(in, id);
    if (auto* absent = std::get_if<change_answer>(&found)) return *absent;
    const auto& job = std::get<job_view>(found);
    if (!can_requeue(job.state))
        return cannot(id, "it is " + std::string(to_text(job.state)) +
                              "; only dead_letter, failed, cancelled and indeterminate jobs are requeued");
    if (in.get(in.jobs().requeue({id})) == 0)
        return cannot(id, job.unique_key ? "another unfinished job has its unique key \"" + one_line(*job.unique_key) +
                                               "\"; cancel that one first, or discard this one"
                                         : "it has changed meanwhile; look again with holdfast jobs show");
    return {id, true, "requeued: generation " + std::to_string(job.generation + 1) + ", due now"};
}

bool can_cancel(job_state s) {
    return !is_final(s);
}
change_answer cancel_one(jobs_store& in, const identifier& id) {
    switch (in.get(in.jobs().cancel({id})).front()) {
    case cancel_answer::cancelled: return {id, true, "cancelled"};
    case cancel_answer::requested: return {id, true, "asked to stop: its worker hears of it with its next heartbeat"};
    case cancel_answer::not_found:
    case cancel_answer::already_ended: break;
    }
    auto found = find(in, id);
    if (auto* absent = std::get_if<change_answer>(&found)) return *absent;
    return cannot(id, "it has ended: " + std::string(to_text(std::get<job_view>(found).state)));
}

change_answer discard_one(jobs_store& in, const identifier& id) {
    auto found = find(in, id);
    if (auto* absent = std::get_if<change_answer>(&found)) return *absent;
    const auto& job = std::get<job_view>(found);
    if (!is_final(job.state)) return cannot(id, "it is " + std::string(to_text(job.state)) + "; cancel it first");
    if (in.get(in.jobs().discard({id})) == 0) return cannot(id, "it has changed meanwhile");
    return {id, true, "discarded"};
}

constexpr change requeueing{"requeued", &can_requeue, "dead_letter, failed, cancelled, indeterminate", &requeue_one,
                            &requeue_matching};
constexpr change cancelling{"cancelled", &can_cancel, "scheduled, pending, processing, waiting_retry", &cancel_one,
                            &cancel_matching};
constexpr change discarding{"discarded", &is_final, "succeeded, failed, dead_letter, cancelled, indeterminate",
                            &discard_one, &discard_matching};

int purge(const arguments& given) {
    const auto state_text = given.value("--state");
    const auto age_text = given.value("--older-than");
    if (!state_text || !age_text) throw usage_error("say what to forget: --state STATE --older-than DURATION");
    const job_state state = state_of(*state_text);
    if (!is_final(state)) throw usage_error("only jobs that have ended are purged: " + std::string(discarding.fitting));
    const auto age = parse_duration(*age_text);
    if (!age) throw usage_error("--older-than is \"" + *age_text + "\"; expected a duration such as 7d or 12h");
    jobs_store in(given);
    if (!given.has("--yes")) {
        const auto ended_by = in.now() - std::chrono::duration_cast<std::chrono::microseconds>(*age);
        const std::uint64_t count = count_matching(in, {.state = state}, ended_by);
        return needs_yes(given, jobs_text(count, state) + " would be purged, which cannot be taken back",
                         none_of(count, "purged"));
    }
    std::uint64_t total = 0;
    for (int count = page_size; count == page_size;) {
        count = in.get(in.jobs().purge(state, *age, page_size));
        total += static_cast<std::uint64_t>(count);
    }
    if (given.has("--json")) std::cout << json_object().add("purged", std::to_string(total)).text() << "\n";
    else
        std::cout << "purged: " << jobs_text(total, state) << " that ended more than " << holdfast::to_text(*age)
                  << " ago\n";
    return 0;
}

std::vector<option> change_options() {
    return {config_option, {"--all", "", "all jobs that match --state and the other filters"},
            state_option,  queue_option,
            type_option,   yes_option,
            json_option};
}

} // namespace

std::vector<command> jobs_change_commands() {
    return {
        {"jobs retry", "[ID]...", "Gives jobs that failed a new generation of attempts, due now.", change_options(),
         [](const arguments& given) { return run(requeueing, given); }},
        {"jobs cancel", "[ID]...", "Cancels jobs; a running one is asked to stop.", change_options(),
         [](const arguments& given) { return run(cancelling, given); }},
        {"jobs discard", "[ID]...", "Forgets jobs that have ended, dead letters above all.", change_options(),
         [](const arguments& given) { return run(discarding, given); }},
        {"jobs purge",
         "",
         "Forgets jobs that ended long ago.",
         {config_option,
          state_option,
          {"--older-than", "DURATION", "only those that ended longer ago than this: 12h, 7d"},
          yes_option,
          json_option},
         &purge},
    };
}

} // namespace holdfast::cli
