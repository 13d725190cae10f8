// What is measured on every runtime, and what folly has of its own to be measured beside.
#pragma once

#include <memory>
#include <string>

#include <holdfast/runtime.hpp>

#include "sleepers.hpp"

namespace bench {

// "<name>: post" and so on. The runtime lives until the benchmarks have run.
void register_runtime(const std::string& name, holdfast::runtime& on);
sleeper_figures sleepers_on(holdfast::runtime& on, int count);

#if defined(HOLDFAST_BENCH_FOLLY)
std::unique_ptr<holdfast::runtime> make_folly_runtime();
// "folly's own: …", on an executor and a Timekeeper of folly's, set up as the runtime's are.
void register_folly_itself();
sleeper_figures sleepers_on_folly_itself(int count);
#endif

} // namespace bench
