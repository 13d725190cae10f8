// Proves that a runtime keeps its contract: every case of the resilience suite on it, on virtual time, and the bare
// contract of runtime.hpp on real time. `holdfast verify` is a thin command around this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/duration.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast::conformance {

struct options {
    std::uint64_t seed = 1;
    std::string filter; // runs the cases whose title() contains this; empty = all

    // How often operator new was called in this process so far. Empty: what counts allocations is not checked.
    std::function<std::size_t()> allocations;
};

struct case_info {
    std::string group;
    int number = 0; // within the group "runtime" and "trace" their own, elsewhere those of the resilience cases
    std::string name;

    // "breaker/34 of a thousand callers only …"
    std::string title() const { return group + "/" + std::to_string(number) + " " + name; }
};

struct case_result {
    enum kind : unsigned char { passed, failed, skipped };

    std::string group;
    int number = 0;
    std::string name;
    kind state = passed;
    std::string message; // why it failed, or was skipped
    duration took{};     // real time

    std::string title() const { return group + "/" + std::to_string(number) + " " + name; }
};

struct summary {
    int passed = 0;
    int failed = 0;
    int skipped = 0;
};

// Every case there is, in the order in which they run.
std::vector<case_info> runtime_cases();

// Runs the cases that the filter chooses, each on runtimes of its own that `make` gives, and reports each as it ends,
// on the calling thread. A runtime that hangs cannot be got rid of: after 120 seconds the case is reported as failed,
// from another thread, and the process is aborted with a message that names it.
summary run_runtime_suite(const std::function<std::unique_ptr<runtime>()>& make, const options& how,
                          const std::function<void(const case_result&)>& report);

} // namespace holdfast::conformance
