#pragma once

#include <cstddef>

namespace holdfast::cli {

// How often this process called operator new, its plugins included.
std::size_t allocations() noexcept;

} // namespace holdfast::cli
