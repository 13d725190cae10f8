// Keeps a few freed coroutine frames per thread, so that a task in steady state allocates nothing.
#pragma once

#include <cstddef>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOLDFAST_DETAIL_NO_FRAME_CACHE
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_DETAIL_NO_FRAME_CACHE
#endif

namespace holdfast::detail {

#if defined(HOLDFAST_DETAIL_NO_FRAME_CACHE)

// Sanitizers must see every frame come and go.
struct frame_cache {
    static void* allocate(std::size_t size) { return ::operator new(size); }
    static void release(void* frame, std::size_t) noexcept { ::operator delete(frame); }
};

#else

class frame_cache {
public:
    static void* allocate(std::size_t size) {
        const std::size_t bin = bin_of(size);
        if (bin >= bins) [[unlikely]]
            return ::operator new(size);
        state& mine = local;
        if (node* frame = mine.head[bin]) {
            mine.head[bin] = frame->next;
            --mine.count[bin];
            return frame;
        }
        return ::operator new((bin + 1) * granule);
    }

    static void release(void* frame, std::size_t size) noexcept {
        const std::size_t bin = bin_of(size);
        state& mine = local;
        if (bin >= bins || mine.count[bin] == keep || !mine.usable()) [[unlikely]] {
            ::operator delete(frame);
            return;
        }
        mine.head[bin] = ::new (frame) node{mine.head[bin]};
        ++mine.count[bin];
    }

private:
    static constexpr std::size_t granule = 64;
    static constexpr std::size_t bins = 32; // frames up to 2 KiB
    static constexpr unsigned char keep = 32;

    struct node {
        node* next;
    };

    struct state {
        node* head[bins];
        unsigned char count[bins];
        bool armed;  // the thread will clean up after itself
        bool closed; // it already did

        bool usable() noexcept {
            if (!armed) [[unlikely]] {
                armed = true;
                static thread_local cleaner at_exit;
                at_exit.touch();
            }
            return !closed;
        }
    };

    struct cleaner {
        void touch() noexcept {}
        ~cleaner() {
            state& mine = local;
            mine.closed = true;
            for (std::size_t bin = 0; bin < bins; ++bin) {
                while (node* frame = mine.head[bin]) {
                    mine.head[bin] = frame->next;
                    ::operator delete(frame);
                }
                mine.count[bin] = 0;
            }
        }
    };

    static constexpr std::size_t bin_of(std::size_t size) noexcept { return (size - 1) / granule; }

    static inline constinit thread_local state local{};
};

#endif

} // namespace holdfast::detail
