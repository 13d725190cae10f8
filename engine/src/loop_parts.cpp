#include "loop_parts.hpp"

#include <filesystem>
#include <fstream>
#include <random>

#include <holdfast/identifier.hpp>

namespace holdfast {

std::uint64_t seed_or_random(std::uint64_t seed) {
    if (seed != 0) return seed;
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

// Linux tells host and process in files; elsewhere the random part alone tells workers apart.
std::string default_worker_name(random_series& random) {
    std::string host;
    std::ifstream("/proc/sys/kernel/hostname") >> host;
    std::error_code none;
    const std::string process = std::filesystem::read_symlink("/proc/self", none).string();
    std::string tail;
    for (std::uint64_t bits = random.next(), i = 0; i < 6; ++i, bits >>= 5)
        tail += detail::identifier_digits[bits & 31];
    return (host.empty() ? "localhost" : host) + ":" + (process.empty() ? "0" : process) + ":" + tail;
}

} // namespace holdfast
