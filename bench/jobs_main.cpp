// What a job costs from enqueueing to settlement. Prints a table, writes jobs.json; a part alone is told by marks.hpp.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/when_all.hpp>

#include "harness/child_process.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"
#include "marks.hpp"
#include "options.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

// A job that does nothing: kept after it succeeded, as by default, or not.
template <bool Kept>
struct no_op {
    static constexpr job_options options{.name = Kept ? "bench.kept" : "bench.gone",
                                         .queue = Kept ? "kept" : "gone",
                                         .keep_for = Kept ? std::optional<duration>() : duration::zero()};
    std::string text;
};

} // namespace

template <bool Kept>
struct holdfast::codec<no_op<Kept>> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const no_op<Kept>& job) { return job.text; }
    static result<no_op<Kept>> decode(std::string_view body) { return no_op<Kept>{std::string(body)}; }
};

namespace {

// About what the benchmarks of others enqueue: {"id":123456}.
std::string payload() {
    return "{\"id\":123456}";
}

struct scale {
    int jobs = 200'000;
    int bulk = 1000;
    duration singles = 3s;
    int clients = 16;
    int latencies = 1000;
    static scale quick() { return {40'000, 1000, 1s, 16, 300}; }
};

struct figures {
    std::string store;
    double enqueue_single_per_s = 0; // one client
    double enqueue_single_many_per_s = 0;
    double enqueue_bulk_per_s = 0;
    double drain_per_s = 0;      // succeeded jobs are not kept
    double drain_kept_per_s = 0; // history kept
    double latency_p50_ms = 0;   // enqueue to start, idle worker
    double latency_p99_ms = 0;
    double cpu_us_per_job = 0; // of this process, while draining
    double memory_mb = 0;      // of this process, after a tenth of the drain
    double growth_mb = 0;      // since then, at its end
};

double seconds_since(steady_clock::time_point start) {
    return std::chrono::duration<double>(steady_clock::now() - start).count();
}

double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

double memory_mb() {
    std::ifstream from("/proc/self/statm");
    double pages = 0;
    double resident = 0;
    from >> pages >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

template <class T>
T get(host& on, task<result<T>> what) {
    auto answer = sync_wait(on.runtime(), std::move(what));
    if (!answer) throw failed(std::move(answer.error()));
    return std::move(*answer);
}

host make_host(const std::string& store, const std::string& jobs) {
    return host::from_text("[log]\nlevel = 'warning'\n[store]\n" + store + "\n[jobs]\n" + jobs + "\n");
}

task<int> enqueue_until(jobs& with, steady_clock::time_point end) {
    int made = 0;
    while (steady_clock::now() < end) {
        auto enqueueing = with.enqueue(no_op<false>{payload()});
        auto done = co_await std::move(enqueueing);
        if (!done) throw failed(std::move(done.error()));
        ++made;
    }
    co_return made;
}

double singles(host& producer, int clients, duration lasting) {
    const auto start = steady_clock::now();
    if (clients == 1) { // a thread that waits for each
        int made = 0;
        for (; seconds_since(start) < std::chrono::duration<double>(lasting).count(); ++made)
            get(producer, producer.jobs().enqueue(no_op<false>{payload()}));
        return made / seconds_since(start);
    }
    std::vector<task<int>> running;
    for (int i = 0; i < clients; ++i)
        running.push_back(
            enqueue_until(producer.jobs(), start + std::chrono::duration_cast<steady_clock::duration>(lasting)));
    int made = 0;
    for (const int each : sync_wait(producer.runtime(), when_all(std::move(running)))) made += each;
    return made / seconds_since(start);
}

template <bool Kept>
double bulk(host& producer, const scale& how) {
    const auto start = steady_clock::now();
    for (int made = 0; made < how.jobs; made += how.bulk)
        get(producer,
            producer.jobs().enqueue_all(std::vector<no_op<Kept>>(static_cast<std::size_t>(how.bulk), {payload()})));
    return how.jobs / seconds_since(start);
}

// Until the worker has settled them all.
template <bool Kept>
double drain(const std::string& store, int jobs, figures& into) {
    // On PostgreSQL each call is a commit, so larger ones pay; the others do not care (operations.md).
    const bool commits = store.starts_with("plugin = 'postgres'");
    auto worker = make_host(store, commits ? "concurrency = 500\nprefetch = 4000\nbatch = 1000"
                                           : "concurrency = 500\nprefetch = 4000");
    worker.add<no_op<Kept>>([](no_op<Kept>) -> task<void> { co_return; });
    const double cpu_before = cpu_seconds();
    const auto start = steady_clock::now();
    worker.start();
    double early = 0;
    for (std::uint64_t done = 0; done < static_cast<std::uint64_t>(jobs); done = worker.worker().succeeded) {
        if (early == 0 && done > static_cast<std::uint64_t>(jobs) / 10) early = memory_mb();
        if (seconds_since(start) > 120) throw std::runtime_error("the queue does not drain");
        std::this_thread::sleep_for(5ms);
    }
    const double took = seconds_since(start);
    into.cpu_us_per_job = (cpu_seconds() - cpu_before) * 1e6 / jobs;
    into.memory_mb = early;
    into.growth_mb = memory_mb() - early;
    return jobs / took;
}

void latencies(const std::string& store, host& producer, int samples, figures& into,
               const bench::marks& told = bench::marks(false)) {
    std::atomic<steady_clock::rep> began = 0;
    auto worker = make_host(store, "");
    worker.add<no_op<false>>([&](no_op<false>) -> task<void> {
        began = steady_clock::now().time_since_epoch().count();
        began.notify_one();
        co_return;
    });
    worker.start();
    std::vector<double> ms;
    constexpr int warm_up = 100;
    for (int i = -warm_up; i < samples; ++i) {
        std::this_thread::sleep_for(i == 0 ? 1000ms : 3ms); // idle again
        if (i == 0) told.begin();
        began = 0;
        const auto asked = steady_clock::now();
        get(producer, producer.jobs().enqueue(no_op<false>{"x"}));
        began.wait(0);
        const steady_clock::time_point start{steady_clock::duration{began.load()}};
        if (i >= 0) ms.push_back(std::chrono::duration<double, std::milli>(start - asked).count());
    }
    told.end();
    std::ranges::sort(ms);
    into.latency_p50_ms = ms[ms.size() / 2];
    into.latency_p99_ms = ms[ms.size() * 99 / 100];
}

// What was enqueued is cleaned up after and on the disk before it is drained, as the benchmarks of others do it.
void settle_down(const std::string& postgres_url) {
    if (postgres_url.empty()) return;
    const auto psql = (*harness::postgres_binaries() / "psql").string();
    if (harness::run(
            {.arguments = {psql, "-X", "-q", "-d", postgres_url, "-c", "VACUUM ANALYZE", "-c", "CHECKPOINT"}}) != 0)
        throw std::runtime_error("psql cannot clean up at " + postgres_url);
}

// url: of a PostgreSQL server.
figures measure(std::string name, const std::string& store, const scale& how, const std::string& url = {}) {
    figures f;
    f.store = std::move(name);
    auto producer = make_host(store, "work = false");
    producer.start();
    std::printf("%s: waiting, enqueueing, draining\n", f.store.c_str());
    std::fflush(stdout);
    latencies(store, producer, how.latencies, f);
    f.enqueue_bulk_per_s = bulk<false>(producer, how);
    settle_down(url);
    f.drain_per_s = drain<false>(store, how.jobs, f);
    bulk<true>(producer, how);
    settle_down(url);
    figures ignored;
    f.drain_kept_per_s = drain<true>(store, how.jobs, ignored);
    f.enqueue_single_per_s = singles(producer, 1, how.singles);
    f.enqueue_single_many_per_s = singles(producer, how.clients, how.singles);
    return f;
}

// One part, beside other systems on the same server.
void tell(std::string_view part, const std::string& store, const scale& how, const std::string& postgres_url) {
    const bench::marks told(true);
    auto producer = make_host(store, "work = false");
    producer.start();
    figures f;
    const auto thousands = std::to_string(how.jobs / 1000) + "k";
    if (part == "latency") {
        latencies(store, producer, how.latencies, f, told);
        told.value("latency enqueue->start idle p50", f.latency_p50_ms, "ms", how.latencies);
        told.value("latency enqueue->start idle p99", f.latency_p99_ms, "ms", how.latencies);
    } else if (part == "enqueue") {
        told.begin();
        const double one_by_one = singles(producer, 1, how.singles);
        told.end();
        told.value("enqueue single, 1 client", one_by_one, "1/s", 1);
        told.begin();
        const double in_bulk = bulk<false>(producer, how);
        told.end();
        told.value("enqueue " + thousands + " by the thousand", in_bulk, "1/s", how.jobs);
    } else {
        const bool kept = part == "kept";
        if (kept) bulk<true>(producer, how);
        else bulk<false>(producer, how);
        settle_down(postgres_url);
        told.begin();
        const double rate = kept ? drain<true>(store, how.jobs, f) : drain<false>(store, how.jobs, f);
        told.end();
        told.value("drain " + thousands + (kept ? ", history kept" : ""), rate, "1/s", how.jobs);
    }
    if (auto gone = sync_wait(producer.runtime(), producer.store().destroy()); !gone) throw failed(gone.error());
}

std::vector<figures> measure_all(const scale& how, std::string_view only, const std::string& url) {
    if (!url.empty())
        return {measure(std::string(only), "plugin = '" + std::string(only) + "'\nurl = '" + url + "'", how,
                        only == "postgres" ? url : "")};
    std::vector<figures> all;
    const auto wanted = [&](std::string_view name) { return only.empty() || only == name; };
    if (wanted("sqlite")) {
        const harness::temporary_folder folder("hfbench");
        all.push_back(
            measure("sqlite", "plugin = 'sqlite'\nfile = '" + (folder.path() / "jobs.db").string() + "'", how));
    }
    if (wanted("postgres") && harness::postgres_binaries()) {
        harness::postgres_server server;
        const std::string at = server.socket_url();
        all.push_back(measure("postgres", "plugin = 'postgres'\nurl = '" + at + "'", how, at));
    }
    if (wanted("redis") && harness::redis_binary()) {
        harness::redis_server server;
        all.push_back(measure("redis", "plugin = 'redis'\nurl = '" + server.url() + "'", how));
    }
    return all;
}

void print(const std::vector<figures>& all) {
    std::printf("\n%-10s %12s %12s %12s %12s %12s %9s %9s %9s %12s\n", "store", "enqueue 1", "enqueue 16", "bulk",
                "drain", "drain, kept", "p50 ms", "p99 ms", "cpu us", "memory MB");
    for (const figures& f : all)
        std::printf("%-10s %10.0f/s %10.0f/s %10.0f/s %10.0f/s %10.0f/s %9.2f %9.2f %9.1f %6.1f %+5.1f\n",
                    f.store.c_str(), f.enqueue_single_per_s, f.enqueue_single_many_per_s, f.enqueue_bulk_per_s,
                    f.drain_per_s, f.drain_kept_per_s, f.latency_p50_ms, f.latency_p99_ms, f.cpu_us_per_job,
                    f.memory_mb, f.growth_mb);
}

void write_json(const std::vector<figures>& all, const std::filesystem::path& file) {
    std::ofstream to(file);
    to << "[";
    for (const figures& f : all) {
        to << (&f == all.data() ? "\n" : ",\n") << "  {\"store\": \"" << f.store
           << "\", \"enqueue_single_per_s\": " << f.enqueue_single_per_s
           << ", \"enqueue_single_16_clients_per_s\": " << f.enqueue_single_many_per_s
           << ", \"enqueue_bulk_per_s\": " << f.enqueue_bulk_per_s << ", \"drain_per_s\": " << f.drain_per_s
           << ", \"drain_kept_per_s\": " << f.drain_kept_per_s << ", \"latency_ms\": {\"p50\": " << f.latency_p50_ms
           << ", \"p99\": " << f.latency_p99_ms << "}, \"cpu_us_per_job\": " << f.cpu_us_per_job
           << ", \"memory_mb\": " << f.memory_mb << ", \"memory_growth_mb\": " << f.growth_mb << "}";
    }
    to << "\n]\n";
    if (!to) throw std::runtime_error("cannot write " + file.string());
    std::printf("\nwritten: %s\n", file.c_str());
}

} // namespace

int main(int argc, char** argv) {
    std::optional<std::filesystem::path> out;
    std::string_view only;
    std::string_view part;
    std::string url;
    scale how;
    const auto ended =
        bench::options(
            "Measures jobs that do nothing from enqueueing to settlement, through the host as an application uses\n"
            "it, on servers of its own with durable defaults, or on the one at URL.")
            .add("--out", "FOLDER", "write FOLDER/jobs.json", [&](auto folder) { out = folder; })
            .add("--only", "STORE", "sqlite, postgres or redis", [&](auto store) { only = store; })
            .add("--url", "URL", "a server of yours, with --only", [&](auto text) { url = text; })
            .add("--part", "PART", "latency, enqueue, drain or kept alone, with --url; told by @BEGIN, @END, @VAL",
                 [&](auto text) { part = text; })
            .add("--jobs", "N", "how many, at least 1000; 200000 unless told",
                 [&](auto text) { how.jobs = std::max(1000, std::atoi(text.data())); })
            .add("--quick", "", "fewer jobs, less time", [&](auto) { how = scale::quick(); })
            .read(argc, argv);
    if (ended) return *ended;
    if (!url.empty() && only.empty()) return bench::options::wrong("--url needs --only STORE");
    if (!part.empty() && url.empty()) return bench::options::wrong("--part needs --url URL");
    try {
        if (!part.empty()) {
            constexpr std::string_view parts[] = {"latency", "enqueue", "drain", "kept"};
            if (std::ranges::find(parts, part) == std::end(parts))
                throw std::runtime_error("there is no part \"" + std::string(part) +
                                         "\"; there are latency, enqueue, drain, kept");
            const std::string store = "plugin = '" + std::string(only) + "'\nurl = '" + url + "'\nnamespace = 'bench_" +
                                      std::to_string(::getpid()) + "'";
            tell(part, store, how, only == "postgres" ? url : "");
            return 0;
        }
        const auto all = measure_all(how, only, url);
        if (all.empty()) throw std::runtime_error("there is nothing to measure: no such store, or no server for it");
        print(all);
        if (!out) return 0;
        std::filesystem::create_directories(*out);
        write_json(all, *out / "jobs.json");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
    return 0;
}
