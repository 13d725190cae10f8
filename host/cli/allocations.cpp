#include "allocations.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOLDFAST_CLI_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_CLI_SANITIZED
#endif

#if defined(HOLDFAST_CLI_SANITIZED)

std::function<std::size_t()> holdfast::cli::allocation_counter() {
    return {};
}

#else

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<std::size_t> count = 0;

} // namespace

std::function<std::size_t()> holdfast::cli::allocation_counter() {
    return [] { return count.load(std::memory_order_relaxed); };
}

// All other forms but the aligned ones end up in these.
void* operator new(std::size_t size) {
    count.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

#endif
