// Measures the runtimes side by side, prints a table, writes runtimes.json, and fails when a promise about speed is not
// kept. Without folly the half that needs it is left out.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <holdfast/asio_runtime.hpp>

#include "best_of.hpp"
#include "options.hpp"
#include "runtimes.hpp"

namespace {

constexpr int sleepers = 10'000;
constexpr double most = 0.3;
constexpr std::string_view promised = "folly: retry, timeout";
constexpr std::string_view beside = "folly's own: timeout(retryN)";

using sleeper_lines = std::vector<std::pair<std::string, bench::sleeper_figures>>;

// How many times folly's own our retry with a timeout takes; nothing without folly.
std::optional<double> ratio_of(const bench::best_of& results) {
    const auto* ours = results.find(promised);
    const auto* theirs = results.find(beside);
    if (ours == nullptr || theirs == nullptr) return std::nullopt;
    return ours->ns / theirs->ns;
}

// They are measured in random order.
std::vector<bench::figure> by_name(const bench::best_of& results) {
    auto figures = results.figures();
    std::ranges::sort(figures, {}, &bench::figure::name);
    return figures;
}

void print(const bench::best_of& results, const sleeper_lines& asleep, std::optional<double> ratio) {
    std::printf("%-44s %9s %8s\n", "", "ns/op", "allocs");
    for (const auto& f : by_name(results)) std::printf("%-44s %9.1f %8.2f\n", f.name.c_str(), f.ns, f.allocations);
    for (const auto& [name, s] : asleep)
        std::printf("%s: %d sleeping retries, %.0f bytes each, all cancelled in %.1f ms\n", name.c_str(), s.sleepers,
                    s.bytes_per_sleeper, s.cancel_all_ms);
    if (ratio)
        std::printf("\"%s\" <= %.1f x \"%s\": %.2f x  %s\n", promised.data(), most, beside.data(), *ratio,
                    *ratio <= most ? "kept" : "NOT KEPT");
    else std::printf("folly was not found when this was built: only the Asio half\n");
}

bool write_json(const std::filesystem::path& file, const bench::best_of& results, const sleeper_lines& asleep,
                std::optional<double> ratio) {
    std::ofstream out(file);
    out << "{\n  \"benchmarks\": [";
    const char* separator = "\n";
    for (const auto& f : by_name(results)) {
        out << separator << "    {\"name\": \"" << f.name << "\", \"ns_per_op\": " << f.ns
            << ", \"allocs_per_op\": " << f.allocations << "}";
        separator = ",\n";
    }
    out << "\n  ],\n  \"sleepers\": [";
    separator = "\n";
    for (const auto& [name, s] : asleep) {
        out << separator << "    {\"name\": \"" << name << "\", \"count\": " << s.sleepers
            << ", \"bytes_each\": " << s.bytes_per_sleeper << ", \"cancel_all_ms\": " << s.cancel_all_ms << "}";
        separator = ",\n";
    }
    out << "\n  ],\n  \"folly\": " << (ratio ? "true" : "false");
    if (ratio)
        out << ",\n  \"promise\": {\"at_most\": " << most << ", \"measured\": " << *ratio
            << ", \"kept\": " << (*ratio <= most ? "true" : "false") << "}";
    out << "\n}\n";
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
            "Measures policies on the runtimes side by side. The exit code is 1 when a promise was not kept.")
            .add("--out", "FOLDER", "write FOLDER/runtimes.json", [&](auto folder) { out = folder; })
            .add("--quick", "", "one repetition", [&](auto) { repetitions = "--benchmark_repetitions=1"; })
            .read(argc, argv, &rest);
    if (ended) return *ended;
    rest[1] = repetitions.data();
    int count = static_cast<int>(rest.size());
    benchmark::Initialize(&count, rest.data());
    if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;

    std::printf("measuring the runtimes: about 10 seconds\n");
    bench::best_of results;
    sleeper_lines asleep;
    holdfast::asio_runtime asio;
    bench::register_runtime("asio", asio);
#if defined(HOLDFAST_BENCH_FOLLY)
    const auto folly = bench::make_folly_runtime();
    bench::register_runtime("folly", *folly);
    bench::register_folly_itself();
#endif
    benchmark::RunSpecifiedBenchmarks(&results);
    asleep.emplace_back("asio", bench::sleepers_on(asio, sleepers));
#if defined(HOLDFAST_BENCH_FOLLY)
    asleep.emplace_back("folly", bench::sleepers_on(*folly, sleepers));
    asleep.emplace_back("folly's own", bench::sleepers_on_folly_itself(sleepers));
#endif
    const auto ratio = ratio_of(results);
    print(results, asleep, ratio);

    if (out) {
        std::filesystem::create_directories(*out);
        const auto file = *out / "runtimes.json";
        if (!write_json(file, results, asleep, ratio)) {
            std::fprintf(stderr, "error: cannot write %s\n", file.c_str());
            return 1;
        }
        std::printf("written: %s\n", file.c_str());
    }
    if (!ratio || *ratio <= most) return 0;
    std::printf("a promise was not kept; machines are noisy: run it again on a quiet one before believing it\n");
    return 1;
}
