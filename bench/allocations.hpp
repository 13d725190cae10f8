// Counts every operator new of the process, plugins included.
#pragma once

#include <cstddef>

std::size_t allocations_so_far() noexcept;
std::size_t bytes_in_use() noexcept;
