// A TCP port on 127.0.0.1 that nobody listens on now.
#pragma once

#include <cstdint>

namespace holdfast::harness {

// Never the same one twice in this process. Somebody else may still take it first: try again with another then.
std::uint16_t free_port();

} // namespace holdfast::harness
