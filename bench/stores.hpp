// The measurements of each store, and how large they are.
#pragma once

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "stores_report.hpp"

namespace bench {

struct store_scale {
    int jobs = 100'000;      // enqueued and drained
    int rounds = 3;          // of ours and of what it is compared with in turn; the best of each counts
    int history = 1'000'000; // finished, and again as many due in the future
    int dead = 1'000'000;    // dead letters to page through
    std::chrono::milliseconds singles{1000};
    int single_rounds = 15; // of ours and of pgbench in turn; the one in the middle counts
    int claims = 1000;      // of which the slowest hundredth is told
    int claim_rounds = 5;   // the median of them counts

    static store_scale quick() { return {40'000, 1, 100'000, 100'000, std::chrono::milliseconds{1000}, 5, 300, 3}; }
};

using store_measurement = void (*)(store_report&, const store_scale&);

// Those that were built. A server that is not installed is said, and left out.
std::vector<std::pair<std::string_view, store_measurement>> store_measurements();

} // namespace bench
