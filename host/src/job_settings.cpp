#include "job_settings.hpp"

#include <algorithm>

#include <holdfast/nearest.hpp>

#include "section.hpp"

namespace holdfast::detail {

namespace {

constexpr std::int64_t many = 1'000'000;

settings section_of(const config_table& table) {
    settings values("[" + table.path + "]");
    for (const config_entry& each : table.values) values.set(each.key, each.value);
    return values;
}

void read_worker(worker_options& into, settings& from) {
    into.concurrency = read_int(from, "concurrency", into.concurrency, 1, many);
    into.prefetch = read_int(from, "prefetch", into.prefetch, 0, many);
    into.batch = read_int(from, "batch", into.batch, 1, 10'000);
    into.settle_wait = from.time("settle_wait", into.settle_wait);
    into.lease = from.positive_time("lease", into.lease);
    into.heartbeat = read_heartbeat(from, into.lease);
    into.poll = from.positive_time("poll", into.poll);
    into.sweep = from.positive_time("sweep", into.sweep);
    into.recovery_limit = read_int(from, "recovery_limit", into.recovery_limit, 1, many);
    into.unknown_kind_delay = from.time("unknown_kind_delay", into.unknown_kind_delay);
    into.shutdown_grace = from.time("shutdown_grace", into.shutdown_grace);
    into.name = from.text("name", "");
    into.defaults.attempts = read_int(from, "attempts", into.defaults.attempts, 1, max_job_attempts);
    into.defaults.max_crashes = read_int(from, "max_crashes", into.defaults.max_crashes, 0, many);
    into.defaults.restart = from.flag("restart", into.defaults.restart);
}

void add_queue(std::vector<worker_queue>& to, worker_queue queue) {
    const auto known = std::ranges::find(to, queue.name, &worker_queue::name);
    if (known == to.end()) to.push_back(std::move(queue));
    else *known = std::move(queue);
}

result<void> read_queues(std::vector<worker_queue>& into, const config_table& table) {
    if (!table.values.empty()) {
        const config_entry& stray = table.values.front();
        return fail(errc::configuration, stray.value.where + ": [jobs.queues] has no key \"" + stray.key +
                                             "\"; write [jobs.queues.NAME], or queues = [\"NAME\"] in [jobs]");
    }
    for (const config_table& each : table.tables) {
        settings values = section_of(each);
        try {
            worker_queue queue{.name = each.name};
            queue.weight = read_int(values, "weight", 1, 1, 1000);
            queue.concurrency = read_int(values, "concurrency", 0, 0, many);
            add_queue(into, std::move(queue));
        } catch (const failed& e) {
            return std::unexpected(e.what_failed());
        }
        if (auto unknown = values.first_unknown()) return std::unexpected(std::move(*unknown));
    }
    return {};
}

isolation_settings::which read_which(settings& from, const config_table& table) {
    using enum isolation_settings::which;
    const std::string text = from.text("jobs", "asked");
    if (text == "asked") return asked;
    if (text == "all") return all;
    if (text == "none") return none;
    const auto written = std::ranges::find(table.values, "jobs", &config_entry::key);
    throw failed({errc::configuration,
                  written->value.where + ": [" + table.path +
                      "] jobs: expected \"asked\", \"all\" or \"none\", found \"" + text + "\"",
                  std::nullopt});
}

result<void> read_isolation(job_settings& into, const config_table& table) {
    settings values = section_of(table);
    try {
        into.isolation.jobs = read_which(values, table);
        into.isolation.processes = read_int(values, "processes", into.isolation.processes, 1, 1000);
        into.isolation.memory = static_cast<std::uint64_t>(values.integer("memory_mb", 0, 0, many)) << 20;
        into.how.kill_after = values.time("kill_after", into.how.kill_after);
    } catch (const failed& e) {
        return std::unexpected(e.what_failed());
    }
    if (auto unknown = values.first_unknown()) return std::unexpected(std::move(*unknown));
    return {};
}

} // namespace

bool job_settings::says_the_same_as(const job_settings& other) const {
    return std::ranges::is_permutation(written, other.written, same_text);
}

result<job_settings> read_job_settings(const config_table& table) {
    job_settings read;
    read.written = flatten(table);
    settings values = section_of(table);
    std::vector<worker_queue> queues;
    try {
        read.work = values.flag("work", true);
        read.node = values.text("node", "");
        read_worker(read.how, values);
        for (const std::string& name : values.list("queues")) add_queue(queues, {.name = name});
    } catch (const failed& e) {
        return std::unexpected(e.what_failed());
    }
    if (auto unknown = values.first_unknown()) return std::unexpected(std::move(*unknown));
    for (const config_table& each : table.tables) {
        if (each.name != "queues" && each.name != "isolation")
            return fail(errc::configuration,
                        each.where + ": there is no section [" + each.path + "]" +
                            did_you_mean(each.name, std::vector<std::string>{"queues", "isolation"}));
        auto done = each.name == "queues" ? read_queues(queues, each) : read_isolation(read, each);
        if (!done) return std::unexpected(std::move(done.error()));
    }
    read.queues_given = !queues.empty();
    if (read.queues_given) read.how.queues = std::move(queues);
    return read;
}

} // namespace holdfast::detail
