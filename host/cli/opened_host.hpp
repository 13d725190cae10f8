// The host of a configuration, opened for one command: it runs no job, relays nothing and consumes nothing.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/sync_wait.hpp>

#include "arguments.hpp"

namespace holdfast::cli {

// Members throw failed.
class opened_host {
public:
    // The configuration of --config.
    explicit opened_host(const arguments& given);

    template <class T>
    T get(task<result<T>> what) {
        auto answer = sync_wait(host_.runtime(), std::move(what));
        if (!answer) throw failed(std::move(answer.error()));
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }

protected:
    ~opened_host() = default;
    host& opened() noexcept { return host_; }

private:
    host host_;
};

// A whole number from 0 on; throws usage_error.
int count_of(const arguments& given, std::string_view option, int otherwise);
// Ids of such things: "a job"; throws usage_error.
std::vector<identifier> ids_of(const std::vector<std::string>& texts, std::string_view of, std::string_view shown_by);

// The file of --config, or holdfast.toml in this folder; throws failed when neither is there.
std::string configuration_of(const arguments& given);
inline constexpr std::string_view default_config = "holdfast.toml";

inline const option config_option{"--config", "FILE", "the configuration; holdfast.toml unless given"};
inline const option json_option{"--json", "", "for programs"};
inline constexpr int default_limit = 50;
inline const option limit_option{"--limit", "N", "at most so many; 50 unless given, 0 for all"};

} // namespace holdfast::cli
