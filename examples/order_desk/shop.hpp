// The first process: takes orders. Each is a row of its own and an event, in one transaction of its own.
#pragma once

#include <filesystem>

// Until so many were taken, or declined; goes on where it was killed. The exit code.
int run_shop(const std::filesystem::path& config, const std::filesystem::path& file, int orders);
