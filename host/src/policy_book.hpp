// The declared policies, and what the configuration makes of them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/host.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/pipeline.hpp>

#include "configuration.hpp"

namespace holdfast::detail {

// Any thread.
class policy_book {
public:
    policy_book();

    result<void> add(const policy_options& declared);

    // Puts the overrides in force, all of them or none, and logs each field that changed. An override of an unknown
    // policy is refused, or logged when that is allowed.
    result<void> apply(const configuration& with, bool allow_unknown, logger& log);
    // Logs what lint says of each policy, once for each form it takes.
    void warn(logger& log);

    const policy_catalog& catalog() const noexcept { return *catalog_; }
    std::vector<policy_in_force> in_force() const;
    std::size_t size() const;

private:
    struct entry {
        policy_options declared;
        policy_options effective;
        std::optional<policy_options> linted;
    };
    result<void> check_names(const configuration& with, bool allow_unknown, logger& log) const;

    std::unique_ptr<policy_catalog> catalog_;
    mutable std::mutex mutex_;
    std::vector<entry> entries_;
};

} // namespace holdfast::detail
