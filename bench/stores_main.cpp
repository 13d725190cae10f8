// Measures the stores beside what their servers and libraries do by themselves, prints a table, writes stores.json, and
// fails when a promise is not kept.
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>

#include "options.hpp"
#include "stores.hpp"

int main(int argc, char** argv) {
    std::optional<std::filesystem::path> out;
    std::string_view only;
    bench::store_scale scale;
    const auto ended =
        bench::options(
            "Measures the stores on servers of its own, in turn with what SQLite's raw statements, pgbench and\n"
            "redis-benchmark do. The exit code is 1 when a promise was not kept. About 10 minutes.")
            .add("--out", "FOLDER", "write FOLDER/stores.json", [&](auto folder) { out = folder; })
            .add("--only", "STORE", "sqlite, postgres or redis", [&](auto store) { only = store; })
            .add("--quick", "", "fewer jobs, fewer rounds, a tenth of the history",
                 [&](auto) { scale = bench::store_scale::quick(); })
            .read(argc, argv);
    if (ended) return *ended;
    bench::store_report report;
    try {
        bool any = false;
        for (const auto& [name, measure] : bench::store_measurements()) {
            if (!only.empty() && only != name) continue;
            any = true;
            measure(report, scale);
        }
        if (!any) throw std::runtime_error("there is no store \"" + std::string(only) + "\" to measure here");
        if (out) {
            std::filesystem::create_directories(*out);
            const auto file = *out / "stores.json";
            if (!report.write_json(file)) throw std::runtime_error("cannot write " + file.string());
            std::printf("\nwritten: %s\n", file.c_str());
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
    if (!report.kept())
        std::printf("a promise was not kept; machines are noisy: run it again on a quiet one before believing it\n");
    return report.kept() ? 0 : 1;
}
