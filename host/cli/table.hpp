#pragma once

#include <string>
#include <vector>

namespace holdfast::cli {

// Columns as wide as their widest cell. The first row is the heading.
std::string to_table(const std::vector<std::vector<std::string>>& rows);

} // namespace holdfast::cli
