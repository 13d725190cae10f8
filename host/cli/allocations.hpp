#pragma once

#include <cstddef>
#include <functional>

namespace holdfast::cli {

// Tells how often this process called operator new, its plugins included. Empty in a build with a sanitizer, which has
// an operator new of its own.
std::function<std::size_t()> allocation_counter();

} // namespace holdfast::cli
