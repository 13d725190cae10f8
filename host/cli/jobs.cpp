// `holdfast jobs list|show|stats`: looking at jobs.
#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include "commands.hpp"
#include "jobs_change.hpp"
#include "jobs_store.hpp"
#include "jobs_text.hpp"
#include "json.hpp"
#include "table.hpp"

namespace holdfast::cli {

namespace {

constexpr int page_size = 500;

// Calls use(page) for as many jobs as are asked for, newest first; 0 = all. True: there are more.
template <class Use>
bool for_each_page(jobs_store& in, const job_filter& filter, int limit, Use use) {
    std::string cursor;
    int left = limit;
    do {
        const int size = limit == 0 ? page_size : std::min(left, page_size);
        job_page page = in.get(in.jobs().list(filter, size, std::move(cursor)));
        use(page.jobs);
        left -= static_cast<int>(page.jobs.size());
        cursor = std::move(page.next);
    } while (!cursor.empty() && (limit == 0 || left > 0));
    return !cursor.empty();
}

void print_json(jobs_store& in, const job_filter& filter, int limit) {
    bool first = true;
    std::cout << "{\"jobs\":[";
    const bool more = for_each_page(in, filter, limit, [&](const std::vector<job_view>& page) {
        for (const job_view& each : page) std::cout << (std::exchange(first, false) ? "\n" : ",\n") << to_json(each);
    });
    std::cout << "\n],\"more\":" << (more ? "true" : "false") << "}\n";
}

int list(const arguments& given) {
    const job_filter filter = filter_of(given);
    const int limit = count_of(given, "--limit", default_limit);
    jobs_store in(given);
    if (given.has("--json")) {
        print_json(in, filter, limit);
        return 0;
    }
    const store_time now = in.now();
    bool first = true;
    const bool more = for_each_page(in, filter, limit, [&](const std::vector<job_view>& page) {
        std::vector<row> rows;
        if (std::exchange(first, false)) rows.push_back(job_heading(filter));
        for (const job_view& each : page) rows.push_back(to_row(each, filter, now));
        std::cout << (page.empty() ? "no jobs\n" : to_table(rows));
    });
    if (more) std::cout << "there are more: --limit says how many to show, 0 shows all\n";
    return 0;
}

int show(const arguments& given) {
    const identifier id = job_ids_of(given).front();
    jobs_store in(given);
    const job_lookup found = in.get(in.jobs().get(id));
    if (const auto* absent = std::get_if<job_absence>(&found)) {
        if (given.has("--json"))
            std::cout << json_object()
                             .add_text("id", to_text(id))
                             .add_text("absent", *absent == job_absence::expired ? "expired" : "never_known")
                             .text()
                      << "\n";
        std::cerr << "error: job " << to_text(id) << ": " << to_text(*absent) << "\n";
        return 1;
    }
    const auto& job = std::get<job_view>(found);
    std::cout << (given.has("--json") ? to_json_with_history(job) + "\n" : to_text(job, in.now()));
    return 0;
}

using counts_by_state = std::array<std::uint64_t, job_state_count>;

std::map<std::string, counts_by_state> by_queue(jobs_store& in) {
    std::map<std::string, counts_by_state> all;
    for (const job_count& each : in.get(in.jobs().counts()))
        all[each.queue][static_cast<std::size_t>(each.state)] += each.count;
    return all;
}

std::string stats_json(const std::map<std::string, counts_by_state>& all) {
    json_object queues;
    for (const auto& [queue, counts] : all) {
        json_object states;
        for (std::size_t i = 0; i < counts.size(); ++i)
            states.add(to_text(static_cast<job_state>(i)), std::to_string(counts[i]));
        queues.add(queue, states.text());
    }
    return json_object().add("queues", queues.text()).text() + "\n";
}

row count_row(std::string name, const counts_by_state& counts) {
    row cells = {std::move(name)};
    for (const std::uint64_t each : counts) cells.push_back(std::to_string(each));
    return cells;
}

int stats(const arguments& given) {
    jobs_store in(given);
    const auto all = by_queue(in);
    if (given.has("--json")) {
        std::cout << stats_json(all);
        return 0;
    }
    row heading = {"QUEUE"};
    for (int i = 0; i < job_state_count; ++i) {
        std::string name(to_text(static_cast<job_state>(i)));
        std::ranges::transform(name, name.begin(), [](char c) { return c == '_' ? ' ' : static_cast<char>(c - 32); });
        heading.push_back(std::move(name));
    }
    std::vector<row> rows = {std::move(heading)};
    counts_by_state total{};
    for (const auto& [queue, counts] : all) {
        rows.push_back(count_row(one_line(queue, 40), counts));
        std::ranges::transform(total, counts, total.begin(), std::plus<>());
    }
    if (all.size() > 1) rows.push_back(count_row("(all)", total));
    std::cout << (all.empty() ? "no jobs\n" : to_table(rows));
    return 0;
}

} // namespace

std::vector<command> jobs_commands() {
    std::vector<command> all = {
        {"jobs list",
         "",
         "Lists jobs, newest first.",
         {config_option, state_option, queue_option, type_option, limit_option, json_option},
         &list},
        {"jobs show",
         "ID",
         "Shows all that is known about a job, and its attempts.",
         {config_option, json_option},
         &show},
        {"jobs stats", "", "Counts the jobs of every queue by state.", {config_option, json_option}, &stats},
    };
    for (command& each : jobs_change_commands()) all.push_back(std::move(each));
    return all;
}

} // namespace holdfast::cli
