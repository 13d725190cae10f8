#include "stores_driver.hpp"

#include <algorithm>

#include <holdfast/when_all.hpp>

namespace bench {

using namespace holdfast;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

template <class T>
T value_of(result<T> answer) {
    if (!answer) throw failed(std::move(answer.error()));
    return std::move(*answer);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values.empty() ? 0 : values[values.size() / 2];
}

} // namespace

driven_store::driven_store(const std::string& plugin, const settings& with) {
    const auto folders = list_plugins(plugin_search_path());
    const auto runs = value_of(find_plugin(folders, plugin_kind::runtime, "asio", quiet_));
    runtime_.emplace(value_of(create_runtime(runs, holdfast::settings("[runtime]"), quiet_)));
    const auto keeps = value_of(find_plugin(folders, plugin_kind::store, plugin, quiet_));
    holdfast::settings keys("[store]");
    for (const auto& [key, value] : with) keys.set(key, value);
    store_.emplace(value_of(create_store(keeps, std::move(keys), quiet_, **runtime_)));
    const auto prepared = sync_wait(**runtime_, (*store_)->prepare());
    if (!prepared) throw failed(prepared.error());
}

std::vector<new_job> driven_store::make(int count, due when, std::optional<duration> keep) {
    std::vector<new_job> batch(static_cast<std::size_t>(count));
    for (new_job& job : batch) {
        job.id = ids_.next();
        job.what = {"bench.job", 1, "application/json", body_};
        job.when = when;
        job.keep_for = keep;
    }
    return batch;
}

double driven_store::enqueue_in_bulk(int rows, int batch, due when, std::optional<duration> keep) {
    const auto start = steady_clock::now();
    for (int done = 0; done < rows; done += batch)
        await(jobs().enqueue(make(std::min(batch, rows - done), when, keep)));
    return rows / seconds_since(start);
}

task<int> driven_store::enqueue_until(steady_clock::time_point end) {
    int count = 0;
    for (; steady_clock::now() < end; ++count) {
        auto call = jobs().enqueue(make(1, due::now(), 0s));
        value_of(co_await std::move(call));
    }
    co_return count;
}

double driven_store::enqueue_one_by_one(int clients, std::chrono::milliseconds lasting) {
    const auto start = steady_clock::now();
    std::vector<task<int>> all;
    for (int i = 0; i < clients; ++i) all.push_back(enqueue_until(start + lasting));
    int total = 0;
    for (const int each : sync_wait(**runtime_, when_all(std::move(all)))) total += each;
    return total / seconds_since(start);
}

double driven_store::enqueue_by_a_thread(std::chrono::milliseconds lasting) {
    const auto start = steady_clock::now();
    int count = 0;
    for (; steady_clock::now() < start + lasting; ++count) await(jobs().enqueue(make(1, due::now(), 0s)));
    return count / seconds_since(start);
}

task<int> driven_store::settle_all(int batch, settlement::kind how) {
    int count = 0;
    for (;;) {
        auto claim = jobs().claim({{"default"}, batch, 1min, "worker-1"});
        const auto claimed = value_of(co_await std::move(claim));
        if (claimed.empty()) co_return count;
        std::vector<settlement> ends;
        ends.reserve(claimed.size());
        for (const claimed_job& each : claimed) ends.push_back({&each.lease, how, {}, {}, {}});
        auto settle = jobs().settle(ends);
        for (const settled& each : value_of(co_await std::move(settle)))
            if (each.answer != write_answer::done) throw failed({errc::internal, "a settlement was refused", {}});
        count += static_cast<int>(claimed.size());
    }
}

double driven_store::drain(int batch, int lanes) {
    const auto start = steady_clock::now();
    std::vector<task<int>> all;
    for (int i = 0; i < lanes; ++i) all.push_back(settle_all(batch, settlement::kind::succeed));
    int total = 0;
    for (const int each : sync_wait(**runtime_, when_all(std::move(all)))) total += each;
    return total / seconds_since(start);
}

double driven_store::claim_p99_us(int samples, int rounds) {
    std::vector<double> each;
    for (int i = 0; i < rounds; ++i) each.push_back(claim_p99_us(samples));
    return median(std::move(each));
}

double driven_store::claim_p99_us(int samples) {
    std::vector<double> took;
    for (int i = 0; i < samples; ++i) {
        await(jobs().enqueue(make(10, due::now(), 0s)));
        const auto start = steady_clock::now();
        const auto claimed = await(jobs().claim({{"default"}, 10, 1min, "worker-1"}));
        took.push_back(seconds_since(start) * 1e6);
        std::vector<settlement> ends;
        for (const claimed_job& each : claimed) ends.push_back({&each.lease, settlement::kind::succeed, {}, {}, {}});
        await(jobs().settle(ends));
    }
    std::ranges::sort(took);
    return took.at(took.size() * 99 / 100);
}

std::pair<double, double> driven_store::page_times_us(int page, int pages) {
    std::vector<double> took;
    std::string cursor;
    for (int i = 0; i < pages; ++i) {
        const auto start = steady_clock::now();
        const job_page found = await(jobs().list({job_state::dead_letter, {}, {}}, page, cursor));
        took.push_back(seconds_since(start) * 1e6);
        cursor = found.next;
        if (cursor.empty()) break;
    }
    const auto some = static_cast<std::ptrdiff_t>(std::min<std::size_t>(took.size(), 50));
    return {median({took.begin(), took.begin() + some}), median({took.end() - some, took.end()})};
}

void driven_store::bury(int rows, int batch) {
    enqueue_in_bulk(rows, batch, due::now(), 0s);
    sync_wait(**runtime_, settle_all(batch, settlement::kind::dead_letter));
}

} // namespace bench
