// [jobs] and [jobs.queues.NAME].
#pragma once

#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/job_worker.hpp>

#include "toml_document.hpp"

namespace holdfast::detail {

struct job_settings {
    bool work = true;                  // false: this process only enqueues
    bool queues_given = false;         // else the queues of the kinds that it knows
    std::string node;                  // for schedules per node; the machine's name unless given
    worker_options how;                // the queues as well, when given
    std::vector<config_entry> written; // all of it, to tell a change

    bool says_the_same_as(const job_settings& other) const;
};

result<job_settings> read_job_settings(const config_table& table);

} // namespace holdfast::detail
