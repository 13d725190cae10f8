// The second process: writes an invoice for every order that it hears of, into a file of its own.
#pragma once

#include <filesystem>

// Until SIGTERM. The exit code.
int run_billing(const std::filesystem::path& config, const std::filesystem::path& file);
