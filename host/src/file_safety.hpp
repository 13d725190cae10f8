#pragma once

#include <filesystem>

#include <holdfast/error.hpp>

namespace holdfast::detail {

// Refuse what somebody else may write to, with the command that mends it. A group may write when it is root's or the
// one that this process runs as.
result<void> check_safe_folder(const std::filesystem::path& folder);
// The file itself, and the folder that it really is in; a folder where only owners may remove (like /tmp) will do.
result<void> check_safe_file(const std::filesystem::path& file);

} // namespace holdfast::detail
