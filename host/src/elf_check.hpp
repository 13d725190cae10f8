#pragma once

#include <filesystem>

#include <holdfast/error.hpp>

namespace holdfast::detail {

// Whether the file is a whole shared library for this machine. The system's loader crashes on some that are cut short.
// The message does not name the file.
result<void> check_elf(const std::filesystem::path& file);

} // namespace holdfast::detail
