// The process that sends the mails. It may be killed at any time.
#pragma once

#include <cstdint>
#include <filesystem>

// Until SIGTERM; gives the exit code.
int run_mail_worker(const std::filesystem::path& config, std::uint16_t mail_port);
