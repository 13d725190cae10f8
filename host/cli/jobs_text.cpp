#include "jobs_text.hpp"

#include <holdfast/duration.hpp>
#include <holdfast/job_header.hpp>
#include <holdfast/timestamp.hpp>

#include "json.hpp"
#include "table.hpp"

namespace holdfast::cli {

namespace {

// Those that were made in process count, as they do for the handler.
int before(const job_view& job) {
    return attempts_before(job.extra, job.generation);
}
std::string attempts(const job_view& job) {
    return std::to_string(before(job) + job.attempts) + "/" + std::to_string(before(job) + job.max_attempts);
}

// Without the stack, which follows in lines of its own.
std::string why(const job_error& error) {
    return cli::why(error.type, error.message.substr(0, error.message.find('\n')));
}
std::string rest_of(const job_error& error) {
    std::string text;
    for (auto at = error.message.find('\n'); at != error.message.npos;) {
        const auto end = error.message.find('\n', at + 1);
        text +=
            "  " + one_line(error.message.substr(at + 1, end == error.message.npos ? end : end - at - 1), 300) + "\n";
        at = end;
    }
    return text;
}

// The column that tells when: its heading, and what is in it.
std::string when_heading(const job_filter& filter) {
    if (!filter.state) return "WHEN";
    switch (*filter.state) {
    case job_state::dead_letter: return "DEAD SINCE";
    case job_state::processing: return "LEASE";
    default: return is_final(*filter.state) ? "ENDED" : "DUE";
    }
}
std::string when(const job_view& job, store_time now) {
    if (is_final(job.state)) return job.ended ? relative(*job.ended, now) : "";
    if (job.state != job_state::processing) return relative(job.due_at, now);
    return job.leased_until && *job.leased_until > now ? "ends " + relative(*job.leased_until, now) : "has run out";
}

std::string remark(const job_view& job) {
    if (job.state == job_state::succeeded) return job.output;
    if (job.state != job_state::processing) {
        if (job.state == job_state::cancelled && job.last_error.type.empty()) return "cancelled";
        return why(job.last_error);
    }
    std::string text = "on " + job.worker;
    if (job.percent > 0 || !job.note.empty()) text += ", " + std::to_string(job.percent) + "%";
    if (!job.note.empty()) text += " " + job.note;
    return job.cancel_requested ? text + ", asked to stop" : text;
}

bool wants_remark(const job_filter& filter) {
    return filter.state != job_state::pending && filter.state != job_state::scheduled;
}

std::string history_table(const job_view& job) {
    std::vector<row> rows = {{"GENERATION", "ATTEMPT", "STARTED", "TOOK", "OUTCOME", "WORKER", "WHY"}};
    for (const attempt_entry& each : job.history)
        rows.push_back({std::to_string(each.generation),
                        std::to_string(attempts_before(job.extra, each.generation) + each.number),
                        holdfast::to_text(each.started), each.ended ? to_short_text(*each.ended - each.started) : "",
                        one_line(each.outcome), one_line(each.worker), one_line(why(each.error))});
    return to_table(rows);
}

json_object basics(const job_view& job) {
    json_object object;
    object.add_text("id", holdfast::to_text(job.id))
        .add_text("job", job.what.type)
        .add_text("state", holdfast::to_text(job.state))
        .add_text("queue", job.queue)
        .add("priority", std::to_string(job.priority))
        .add("attempts", std::to_string(before(job) + job.attempts))
        .add("max_attempts", std::to_string(before(job) + job.max_attempts))
        .add("crash_count", std::to_string(job.crash_count))
        .add("max_crashes", std::to_string(job.max_crashes))
        .add("generation", std::to_string(job.generation))
        .add("may_restart", job.may_restart ? "true" : "false")
        .add("cancel_requested", job.cancel_requested ? "true" : "false")
        .add_text("created", holdfast::to_text(job.created))
        .add_text("due_at", holdfast::to_text(job.due_at));
    if (job.ended) object.add_text("ended", holdfast::to_text(*job.ended));
    if (!job.worker.empty()) object.add_text("worker", job.worker);
    if (job.leased_until) object.add_text("leased_until", holdfast::to_text(*job.leased_until));
    if (job.unique_key) object.add_text("unique_key", *job.unique_key);
    if (job.parent) object.add_text("parent", holdfast::to_text(*job.parent));
    object.add("percent", std::to_string(job.percent)).add_text("note", job.note).add_text("output", job.output);
    object.add("error",
               json_object().add_text("type", job.last_error.type).add_text("message", job.last_error.message).text());
    return object;
}

} // namespace

row job_heading(const job_filter& filter) {
    row cells = {"ID", "JOB"};
    if (!filter.queue) cells.emplace_back("QUEUE");
    if (!filter.state) cells.emplace_back("STATE");
    cells.emplace_back("ATTEMPTS");
    cells.push_back(when_heading(filter));
    if (wants_remark(filter)) cells.emplace_back(filter.state == job_state::succeeded ? "OUTPUT" : "WHY");
    return cells;
}

row to_row(const job_view& job, const job_filter& filter, store_time now) {
    row cells = {holdfast::to_text(job.id), one_line(job.what.type, 40)};
    if (!filter.queue) cells.push_back(one_line(job.queue, 40));
    if (!filter.state) cells.emplace_back(holdfast::to_text(job.state));
    cells.push_back(attempts(job));
    cells.push_back(when(job, now));
    if (wants_remark(filter)) cells.push_back(one_line(remark(job)));
    return cells;
}

std::string to_text(const job_view& job, store_time now) {
    std::vector<row> rows = {
        {"id", holdfast::to_text(job.id)},
        {"job", one_line(job.what.type) + ", version " + std::to_string(job.what.version)},
        {"queue", one_line(job.queue) + ", priority " + std::to_string(job.priority)},
        {"state", std::string(holdfast::to_text(job.state)) + (job.cancel_requested ? ", asked to stop" : "")},
        {"attempts",
         attempts(job) + (before(job) > 0 ? ", " + std::to_string(before(job)) + " of them in process" : "") +
             ", generation " + std::to_string(job.generation) + ", " + std::to_string(job.crash_count) + " crashes"},
        {"restart", job.may_restart ? "allowed" : "never"},
        {"created", absolute(job.created, now)},
        {"due", absolute(job.due_at, now)},
    };
    if (job.ended) rows.push_back({"ended", absolute(*job.ended, now)});
    if (!job.worker.empty()) rows.push_back({"worker", one_line(job.worker)});
    if (job.leased_until) rows.push_back({"leased until", absolute(*job.leased_until, now)});
    if (job.percent > 0 || !job.note.empty())
        rows.push_back({"progress", std::to_string(job.percent) + "% " + one_line(job.note)});
    if (job.unique_key) rows.push_back({"unique key", one_line(*job.unique_key)});
    if (job.parent) rows.push_back({"parent", holdfast::to_text(*job.parent)});
    for (const auto& [name, value] : job.extra) rows.push_back({"header " + one_line(name), one_line(value)});
    if (!job.last_error.type.empty() || !job.last_error.message.empty())
        rows.push_back({"last error", one_line(why(job.last_error), 1000)});
    if (!job.output.empty()) rows.push_back({"output", one_line(job.output, 1000)});
    rows.push_back({"payload", body_text(job.what)});
    std::string text = to_table(rows);
    if (const std::string rest = rest_of(job.last_error); !rest.empty())
        text += "\nthe rest of the last error:\n" + rest;
    if (!job.history.empty()) text += "\n" + history_table(job);
    return text;
}

std::string to_text(job_absence why) {
    return why == job_absence::expired
               ? "expired: it ended, and the time to keep it has passed"
               : "never known to this store; is it the right --config, and the namespace that is meant?";
}

std::string to_json(const job_view& job) {
    return basics(job).text();
}

std::string to_json_with_history(const job_view& job) {
    json_object extra;
    for (const auto& [name, value] : job.extra) extra.add_text(name, value);
    json_array history;
    for (const attempt_entry& each : job.history) {
        json_object entry;
        entry.add("generation", std::to_string(each.generation))
            .add("attempt", std::to_string(attempts_before(job.extra, each.generation) + each.number))
            .add("token", std::to_string(each.token))
            .add_text("worker", each.worker)
            .add_text("started", holdfast::to_text(each.started));
        if (each.ended) entry.add_text("ended", holdfast::to_text(*each.ended));
        entry.add_text("outcome", each.outcome)
            .add("error",
                 json_object().add_text("type", each.error.type).add_text("message", each.error.message).text());
        history.add(entry.text());
    }
    return basics(job)
        .add("version", std::to_string(job.what.version))
        .add_text("content_type", job.what.content_type)
        .add_text("body", job.what.body)
        .add("headers", extra.text())
        .add("history", history.text())
        .text();
}

} // namespace holdfast::cli
