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

double driven_store::claim_us() {
    await(jobs().enqueue(make(10, due::now(), 0s)));
    const auto start = steady_clock::now();
    const auto claimed = await(jobs().claim({{"default"}, 10, 1min, "worker-1"}));
    const double took = seconds_since(start) * 1e6;
    std::vector<settlement> ends;
    for (const claimed_job& each : claimed) ends.push_back({&each.lease, settlement::kind::succeed, {}, {}, {}});
    await(jobs().settle(ends));
    return took;
}

std::pair<double, double> claim_p99_us(driven_store& one, driven_store& other, int samples, int rounds) {
    const auto p99 = [](std::vector<double> took) {
        std::ranges::sort(took);
        return took.at(took.size() * 99 / 100);
    };
    for (int i = 0; i < samples / 4; ++i) one.claim_us(), other.claim_us(); // until caches are warm
    std::vector<double> of_one;
    std::vector<double> of_other;
    for (int round = 0; round < rounds; ++round) {
        std::vector<double> took_one;
        std::vector<double> took_other;
        for (int i = 0; i < samples; ++i) {
            took_one.push_back(one.claim_us());
            took_other.push_back(other.claim_us());
        }
        of_one.push_back(p99(std::move(took_one)));
        of_other.push_back(p99(std::move(took_other)));
    }
    return {median(std::move(of_one)), median(std::move(of_other))};
}

std::pair<double, double> driven_store::page_times_us(int page, int pages) {
    const auto read = [&](const std::string& from) {
        return await(jobs().list({job_state::dead_letter, {}, {}}, page, from)).next;
    };
    std::vector<std::string> cursors{""};
    while (static_cast<int>(cursors.size()) < pages) {
        std::string next = read(cursors.back());
        if (next.empty()) break;
        cursors.push_back(std::move(next));
    }
    const auto time_of = [&](const std::string& from) {
        const auto start = steady_clock::now();
        read(from);
        return seconds_since(start) * 1e6;
    };
    const std::size_t some = std::min<std::size_t>(cursors.size(), 50);
    std::vector<double> first;
    std::vector<double> last;
    for (int round = 0; round < 10; ++round)
        for (std::size_t i = 0; i < some; ++i) {
            first.push_back(time_of(cursors[i]));
            last.push_back(time_of(cursors[cursors.size() - some + i]));
        }
    return {median(std::move(first)), median(std::move(last))};
}

void driven_store::bury(int rows, int batch) {
    enqueue_in_bulk(rows, batch, due::now(), 0s);
    sync_wait(**runtime_, settle_all(batch, settlement::kind::dead_letter));
}

} // namespace bench
