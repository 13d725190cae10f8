// [jobs], [jobs.queues.NAME] and [jobs.isolation].
#pragma once

#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/job_worker.hpp>

#include "toml_document.hpp"

namespace holdfast::detail {

// [jobs.isolation]: which jobs run in processes of their own.
struct isolation_settings {
    enum class which : unsigned char { asked, all, none } jobs = which::asked;
    int processes = 8;        // at the same time
    std::uint64_t memory = 0; // bytes that each may have; 0 = as much as there is
};

struct job_settings {
    bool work = true;          // false: this process only enqueues
    bool queues_given = false; // else the queues of the kinds that it knows
    std::string node;          // for schedules per node; the machine's name unless given
    worker_options how;        // the queues as well, when given
    isolation_settings isolation;
    std::vector<config_entry> written; // all of it, to tell a change

    bool says_the_same_as(const job_settings& other) const;
};

result<job_settings> read_job_settings(const config_table& table);

} // namespace holdfast::detail
