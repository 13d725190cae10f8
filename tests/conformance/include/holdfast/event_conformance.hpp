// Proves that a transport of events keeps its contract, capability-driven. `holdfast verify` is a thin command around
// this; a test program of a transport's own can run it as well.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/conformance.hpp>
#include <holdfast/event_transport.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast::conformance {

// Settings by key, as text. The kit uses those that every transport has: keep, max_backlog, max_payload.
using transport_settings = std::vector<std::pair<std::string, std::string>>;

// Where transports come from. The kit calls prepare() on each, and destroy() on the fresh ones at their end.
struct transport_bed {
    // An empty transport, with a namespace of its own and these settings beside its author's.
    std::function<std::unique_ptr<event_transport>(const transport_settings&)> fresh;
    // One more instance on the data of the latest fresh one, with the same settings, as another process would have it.
    // Empty when the data goes with the instance. Two are open at the same time only when the transport is shared.
    std::function<std::unique_ptr<event_transport>()> again;
    // What the transports were given. On virtual time if their clock follows it, else on real time. Not stopped.
    runtime* on = nullptr;
};

struct transport_options {
    std::string filter; // as in options

    // How often a race is run, where one outcome in many shows.
    int rounds = 20;
};

// Every case there is, in the order in which they run.
std::vector<case_info> transport_cases();

// Runs the cases that the filter chooses, each on a fresh transport, and reports each as it ends, on the calling thread,
// which must not be one of the runtime's. A transport that hangs ends the process as a runtime does.
summary run_transport_suite(const transport_bed& bed, const transport_options& how,
                            const std::function<void(const case_result&)>& report);

} // namespace holdfast::conformance
