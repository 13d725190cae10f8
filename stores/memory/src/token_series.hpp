#pragma once

#include <cstdint>

namespace holdfast::memory {

// One series for all subjects: whatever is forgotten, no token comes twice.
class token_series {
public:
    std::uint64_t next() noexcept { return ++last_; }

private:
    std::uint64_t last_ = 0;
};

} // namespace holdfast::memory
