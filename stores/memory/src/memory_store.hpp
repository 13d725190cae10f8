// The reference: everything in this process, under one lock, by the rules of job_machine.hpp. Its clock follows the
// runtime's, so on virtual time leases end without anybody waiting.
#pragma once

#include <memory>

#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>

#include "core.hpp"

namespace holdfast::memory {

// The runtime, if there is one, outlives the store. All calls end at once on the thread that makes them.
std::unique_ptr<store> make_store(const options& with = {}, const runtime* on = nullptr);

} // namespace holdfast::memory
