// The store that a configuration names, opened for one command.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/sync_wait.hpp>

#include "arguments.hpp"

namespace holdfast::cli {

// Members throw failed.
class jobs_store {
public:
    explicit jobs_store(const arguments& given);

    job_store& jobs() { return host_.job_store(); }
    store_time now() { return get(host_.store_of(facet::jobs).now()); }

    template <class T>
    T get(task<result<T>> what) {
        auto answer = sync_wait(host_.runtime(), std::move(what));
        if (!answer) throw failed(std::move(answer.error()));
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }

private:
    host host_;
};

// What the options --state, --queue and --type say; throws usage_error.
job_filter filter_of(const arguments& given);
job_state state_of(const std::string& text);
// A whole number from 0 on; throws usage_error.
int count_of(const arguments& given, std::string_view option, int otherwise);
std::vector<identifier> ids_of(const std::vector<std::string>& texts);

inline const option config_option{"--config", "FILE", "the configuration; holdfast.toml unless given"};
inline const option json_option{"--json", "", "for programs"};
inline const option yes_option{"--yes", "", "do it; without this, a change to many jobs only says what it would do"};
inline const option state_option{"--state", "STATE", "only jobs in this state: scheduled, pending, processing, …"};
inline const option queue_option{"--queue", "NAME", "only jobs of this queue"};
inline const option type_option{"--type", "NAME", "only jobs of this type"};

} // namespace holdfast::cli
