// The store that a configuration names, opened for one command.
#pragma once

#include <string>
#include <vector>

#include <holdfast/job_store.hpp>

#include "opened_host.hpp"

namespace holdfast::cli {

// Members throw failed.
class jobs_store : public opened_host {
public:
    explicit jobs_store(const arguments& given);

    job_store& jobs() { return opened().job_store(); }
    store_time now() { return get(opened().store_of(facet::jobs).now()); }
};

// What the options --state, --queue and --type say; throws usage_error.
job_filter filter_of(const arguments& given);
job_state state_of(const std::string& text);
std::vector<identifier> job_ids_of(const arguments& given);

inline const option state_option{"--state", "STATE", "only jobs in this state: scheduled, pending, processing, …"};
inline const option queue_option{"--queue", "NAME", "only jobs of this queue"};
inline const option type_option{"--type", "NAME", "only jobs of this type"};

} // namespace holdfast::cli
