// Measures policies, prints a table, writes pipeline.json, and fails when a promise about speed is not kept.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "best_of.hpp"
#include "options.hpp"
#include "sleepers.hpp"
#include "subjects.hpp"

namespace {

using bench::best_of;
using bench::figure;

// A promise: at most so many times another measurement of the same run, and no allocation.
struct promise {
    std::string_view name;
    double most;
    std::string_view times;
};

constexpr std::string_view clock_name = "clock read";
constexpr promise promises[] = {
    {"blocking: retry", 0.6, clock_name},
    {"blocking: retry, timeout, breaker", 1.5, "by hand: retry, timeout, breaker"},
    {"blocking: all stages", 5, clock_name},
    {"coroutine: retry", 1.5, clock_name},
    {"coroutine: retry, timeout, breaker", 3, clock_name},
    {"open circuit, refused as a value", 2, clock_name},
    {"one more attempt after a returned error", 2, clock_name},
};

struct line {
    figure measured;
    double clock_reads = 0;
    std::string promised;
    bool kept = true;
};

std::vector<line> judge(const best_of& results) {
    const figure* clock = results.find(clock_name);
    std::vector<line> lines;
    for (const figure& f : results.figures()) {
        line l{f, clock == nullptr ? 0 : f.ns / clock->ns, "", true};
        for (const promise& p : promises) {
            const figure* other = results.find(p.times);
            if (p.name != f.name || other == nullptr) continue;
            char text[96];
            std::snprintf(text, sizeof text, "<= %.3g x %s, 0 allocs: %.2f x", p.most, std::string(p.times).c_str(),
                          f.ns / other->ns);
            l.promised = text;
            l.kept = f.ns <= p.most * other->ns && f.allocations < 0.001;
        }
        lines.push_back(std::move(l));
    }
    return lines;
}

void print(const std::vector<line>& lines, const bench::sleeper_figures& s, const bench::timer_figures& t) {
    std::printf("%-42s %9s %8s %12s  %s\n", "", "ns/op", "allocs", "clock reads", "promise");
    for (const line& l : lines)
        std::printf("%-42s %9.1f %8.2f %12.2f  %s%s\n", l.measured.name.c_str(), l.measured.ns, l.measured.allocations,
                    l.clock_reads, l.promised.c_str(),
                    l.promised.empty() ? ""
                    : l.kept           ? "  kept"
                                       : "  NOT KEPT");
    std::printf("%d sleeping retries: %.0f bytes each, all cancelled in %.1f ms\n", s.sleepers, s.bytes_per_sleeper,
                s.cancel_all_ms);
    std::printf("%d timers due within 50 ms: all expired after %.1f ms, %d early, %d missing\n", t.timers,
                t.all_expired_ms, t.early, t.missing);
}

bool write_json(const std::filesystem::path& file, const std::vector<line>& lines, const bench::sleeper_figures& s,
                const bench::timer_figures& t) {
    std::ofstream out(file);
    out << "{\n  \"unit\": \"one steady_clock::now() of the same run\",\n  \"benchmarks\": [\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const line& l = lines[i];
        char text[320];
        std::snprintf(
            text, sizeof text,
            "    {\"name\": \"%s\", \"ns_per_op\": %.2f, \"allocs_per_op\": %.3f, \"clock_reads\": %.3f%s}%s\n",
            l.measured.name.c_str(), l.measured.ns, l.measured.allocations, l.clock_reads,
            l.promised.empty() ? ""
            : l.kept           ? ", \"promise_kept\": true"
                               : ", \"promise_kept\": false",
            i + 1 < lines.size() ? "," : "");
        out << text;
    }
    out << "  ],\n  \"sleepers\": {\"count\": " << s.sleepers << ", \"bytes_each\": " << s.bytes_per_sleeper
        << ", \"cancel_all_ms\": " << s.cancel_all_ms << "},\n  \"timers\": {\"count\": " << t.timers
        << ", \"all_expired_ms\": " << t.all_expired_ms << ", \"early\": " << t.early << ", \"missing\": " << t.missing
        << "}\n}\n";
    out.close();
    return static_cast<bool>(out);
}

} // namespace

int main(int argc, char** argv) {
    std::optional<std::filesystem::path> out;
    std::string repetitions = "--benchmark_repetitions=7";
    std::string min_time = "--benchmark_min_time=0.05";
    std::string interleave = "--benchmark_enable_random_interleaving=true";
    std::vector<char*> rest{argv[0], repetitions.data(), min_time.data(), interleave.data()};
    const auto ended =
        bench::options(
            "Measures the happy path of policies, sleepers and timers. The exit code is 1 when a promise was not kept.")
            .add("--out", "FOLDER", "write FOLDER/pipeline.json", [&](auto folder) { out = folder; })
            .add("--quick", "", "one repetition", [&](auto) { repetitions = "--benchmark_repetitions=1"; })
            .read(argc, argv, &rest);
    if (ended) return *ended;
    rest[1] = repetitions.data();
    int count = static_cast<int>(rest.size());
    benchmark::Initialize(&count, rest.data());
    if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;

    std::printf("measuring: about 30 seconds\n");
    best_of results;
    benchmark::RunSpecifiedBenchmarks(&results);
    const auto lines = judge(results);
    const auto sleepers = bench::measure_sleepers(bench::running_host().policies(), 10'000);
    const auto timers = bench::measure_timers(bench::running_host().runtime(), 100'000);
    print(lines, sleepers, timers);

    if (out) {
        std::filesystem::create_directories(*out);
        const auto file = *out / "pipeline.json";
        if (!write_json(file, lines, sleepers, timers)) {
            std::fprintf(stderr, "error: cannot write %s\n", file.c_str());
            return 1;
        }
        std::printf("written: %s\n", file.c_str());
    }
    const bool kept = std::ranges::all_of(lines, &line::kept) && timers.early == 0 && timers.missing == 0;
    if (!kept)
        std::printf("a promise was not kept; machines are noisy: run it again on a quiet one before believing it\n");
    return kept ? 0 : 1;
}
