// The reference: everything in this process, under one lock. Its clock follows the runtime's, so on virtual time leases
// end without anybody waiting.
#pragma once

#include <memory>

#include <holdfast/event_transport.hpp>
#include <holdfast/runtime.hpp>

#include "transport_rules.hpp"

namespace holdfast::events_memory {

// The runtime, if there is one, outlives the transport. All calls end at once on the thread that makes them.
std::unique_ptr<event_transport> make_transport(const options& with = {}, const runtime* on = nullptr);

} // namespace holdfast::events_memory
