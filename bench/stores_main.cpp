// holdfast_store_bench [--out FOLDER] [--quick] [--only STORE]: measures the stores beside what their servers and
// libraries do by themselves, prints a table, writes FOLDER/stores.json, and fails when a promise is not kept.
#include <cstdio>
#include <exception>
#include <optional>
#include <string_view>

#include "stores.hpp"

int main(int argc, char** argv) {
    std::optional<std::filesystem::path> out;
    std::string_view only;
    bench::store_scale scale;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--out" && i + 1 < argc) out = argv[++i];
        else if (argument == "--only" && i + 1 < argc) only = argv[++i];
        else if (argument == "--quick") scale = bench::store_scale::quick();
        else {
            std::fprintf(stderr, "error: unknown argument \"%s\"; use --out FOLDER, --quick, --only STORE\n", argv[i]);
            return 2;
        }
    }
    bench::store_report report;
    try {
        for (const auto& [name, measure] : bench::store_measurements())
            if (only.empty() || only == name) measure(report, scale);
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
