// An application as a plugin, for `holdfast run`: it declares what it has and gets what it needs. Programs with a
// main() of their own use holdfast::host instead and need none of this.
#pragma once

#include <stop_token>

#include <holdfast/logger.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

// Where declarations go. Throws failed(errc::duplicate) for a name that is taken.
class declarations {
public:
    virtual void add(const policy& p) = 0;

    template <class... More>
        requires(sizeof...(More) > 0)
    void add(const policy& first, const More&... more) {
        add(first);
        add(more...);
    }

protected:
    ~declarations() = default;
};

// What a running host offers.
class services {
public:
    virtual holdfast::policies& policies() noexcept = 0;
    virtual holdfast::runtime& runtime() noexcept = 0;
    virtual logger& log() noexcept = 0;

protected:
    ~services() = default;
};

class application {
public:
    virtual ~application() = default;
    // Before anything runs.
    virtual void declare(declarations& to) = 0;
    // Runs on a runtime thread until it ends by itself or `stop` fires; the value is the exit code.
    virtual task<int> run(services& with, std::stop_token stop) = 0;
};

} // namespace holdfast
