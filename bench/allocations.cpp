#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

std::atomic<std::size_t> count = 0;
std::atomic<std::size_t> in_use = 0;

void* take(std::size_t size) {
    void* memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    count.fetch_add(1, std::memory_order_relaxed);
    in_use.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
    return memory;
}

void give_back(void* memory) noexcept {
    if (memory == nullptr) return;
    in_use.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
    std::free(memory);
}

} // namespace

std::size_t allocations_so_far() noexcept {
    return count.load(std::memory_order_relaxed);
}
std::size_t bytes_in_use() noexcept {
    return in_use.load(std::memory_order_relaxed);
}

void* operator new(std::size_t size) {
    return take(size);
}
void* operator new[](std::size_t size) {
    return take(size);
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete[](void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    give_back(memory);
}
