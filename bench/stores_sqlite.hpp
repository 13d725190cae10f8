// What the SQLite store costs beside the bare statements that do the same work, in the same run.
#pragma once

#include <string>

#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>

namespace bench {

struct sqlite_figures {
    double raw_enqueued_per_s = 0;
    double enqueued_per_s = 0;
    double raw_done_per_s = 0; // claimed and deleted
    double done_per_s = 0;     // claimed and settled, nothing kept
    double claim_p99_us = 0;
    double claim_p99_with_history_us = 0;
};

// `kept`: an empty, prepared SQLite store. `raw_file`: a file that is not there yet, on the same disk. `jobs` are
// worked on in batches of 100; `history` jobs have ended and as many are due in a year when the last figure is taken.
// Throws holdfast::failed or std::runtime_error.
sqlite_figures measure_sqlite(holdfast::store& kept, holdfast::runtime& on, const std::string& raw_file, int jobs,
                              int history);

} // namespace bench
