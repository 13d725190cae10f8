#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "invoice.hpp"

namespace {

void note(desk_report& into, const holdfast::job_view& job, const mailbox_entry& box) {
    const bool dead = job.state == holdfast::job_state::dead_letter;
    into.recognised += box.recognised;
    into.crashed += std::ranges::any_of(job.history, [](const auto& a) { return a.outcome == "crashed"; }) ? 1 : 0;
    if (box.delivered > 1) ++into.delivered_more;
    else if (!is_final(job.state)) ++into.unfinished;
    else if (box.delivered == 0) ++(dead ? into.dead : into.lost);
    else ++(job.state == holdfast::job_state::succeeded ? into.delivered_once : into.at_odds);
    if (dead) ++into.dead_because[job.last_error.type + ": " + job.last_error.message];
    else ++into.by_attempts[job.attempts];
}

void row(const char* what, int number, std::string_view remark = {}) {
    std::printf("  %-34s %5d%s%.*s\n", what, number, remark.empty() ? "" : "   ", static_cast<int>(remark.size()),
                remark.data());
}

} // namespace

desk_report make_report(const std::vector<holdfast::job_view>& jobs, const mail_server& server) {
    const auto entries = server.entries();
    desk_report report;
    report.mails = static_cast<int>(jobs.size());
    for (const auto& job : jobs) {
        const auto found = entries.find(to_text(job.id)); // the key that handlers get
        note(report, job, found == entries.end() ? mailbox_entry{} : found->second);
    }
    return report;
}

void print(const desk_report& r, double seconds) {
    std::printf("\n%d mails in %.1f seconds\n", r.mails, seconds);
    row("delivered once", r.delivered_once);
    for (const auto& [attempts, count] : r.by_attempts) {
        const std::string label = "    at attempt " + std::to_string(attempts);
        row(label.c_str(), count);
    }
    row("dead-lettered", r.dead);
    for (const auto& [why, count] : r.dead_because) std::printf("      %s (%d)\n", why.c_str(), count);
    row("in the hands of the killed worker", r.crashed, "taken over by the next");
    row("sent again, recognised by the key", r.recognised, "the server had not said that it took them");
    row("delivered twice", r.delivered_more);
    row("lost", r.lost);
    if (r.at_odds != 0) row("delivered, but not by their jobs", r.at_odds);
    if (r.unfinished != 0) row("unfinished", r.unfinished);
    if (!r.killed) std::printf("  the worker was never killed: all was done before\n");
    if (r.worker_code != 0) std::printf("  the worker ended with code %d\n", r.worker_code);
    std::printf("%s\n", r.good() ? "[ok] every mail was delivered once, or dead-lettered with a reason"
                                 : "[NO] that is not what this demo is to show");
    std::fflush(stdout);
}
