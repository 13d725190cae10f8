// What Google Benchmark measured, in short: one figure for each name.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "allocations.hpp"

namespace bench {

struct figure {
    std::string name;
    double ns = 0;
    double allocations = 0;
};

// The best of all repetitions: what the code costs when nothing else gets in its way. The counter "per" says how many
// operations one iteration is, "allocs" how many allocations it made.
class best_of final : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
            std::string name = run.run_name.function_name;
            if (run.threads > 1 || name == "breaker, contended") name += ", threads " + std::to_string(run.threads);
            const auto counter = [&](const char* key, double otherwise) {
                const auto found = run.counters.find(key);
                return found == run.counters.end() ? otherwise : found->second.value;
            };
            const double per = counter("per", 1);
            note({name, run.GetAdjustedRealTime() / per, counter("allocs", 0) / per});
        }
    }
    const std::vector<figure>& figures() const { return figures_; }
    const figure* find(std::string_view name) const {
        const auto found = std::ranges::find(figures_, name, &figure::name);
        return found == figures_.end() ? nullptr : &*found;
    }

private:
    void note(figure f) {
        const auto known = std::ranges::find(figures_, f.name, &figure::name);
        if (known == figures_.end()) {
            figures_.push_back(f);
        } else {
            known->ns = std::min(known->ns, f.ns);
            known->allocations = std::min(known->allocations, f.allocations);
        }
    }
    std::vector<figure> figures_;
};

// Counts allocations from warm() on, when caches are.
class allocation_count {
public:
    explicit allocation_count(benchmark::State& state) : state_(state) {}
    void warm() noexcept { before_ = allocations_so_far(); }
    ~allocation_count() {
        const auto made = static_cast<double>(allocations_so_far() - before_);
        state_.counters["allocs"] = made / static_cast<double>(state_.iterations());
    }

private:
    benchmark::State& state_;
    std::size_t before_ = 0;
};

} // namespace bench
