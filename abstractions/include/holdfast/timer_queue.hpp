// Any number of armed timers, earliest first; equal times keep their order. For authors of runtimes. A heap with the
// position kept in each timer, so that a cancel costs no search. Not thread-safe; allocates only to grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <holdfast/runtime.hpp>

namespace holdfast {

class timer_queue {
public:
    void push(timer& t, time_point due) {
        heap_.push_back(&t); // may throw: then t is untouched
        t.due = due;
        t.sequence = next_sequence_++;
        rise(heap_.size() - 1);
    }

    // False: t is not in this queue.
    bool remove(timer& t) noexcept {
        const std::size_t at = t.position;
        if (at >= heap_.size() || heap_[at] != &t) return false;
        t.position = none;
        timer* last = heap_.back();
        heap_.pop_back();
        if (last != &t) {
            place(*last, at);
            rise(at);
            sink(last->position);
        }
        return true;
    }

    // The earliest timer that is due at `now`, taken out; null when none is.
    timer* pop_due(time_point now) noexcept { return !heap_.empty() && heap_.front()->due <= now ? pop() : nullptr; }

    // The earliest timer, taken out; null when empty.
    timer* pop() noexcept {
        if (heap_.empty()) return nullptr;
        timer* first = heap_.front();
        remove(*first);
        return first;
    }

    // When the earliest is due; `never` when empty.
    time_point next_due() const noexcept { return heap_.empty() ? never : heap_.front()->due; }
    bool empty() const noexcept { return heap_.empty(); }
    std::size_t size() const noexcept { return heap_.size(); }

private:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    static bool before(const timer& a, const timer& b) noexcept {
        return a.due != b.due ? a.due < b.due : a.sequence < b.sequence;
    }
    void place(timer& t, std::size_t at) noexcept {
        heap_[at] = &t;
        t.position = at;
    }
    void rise(std::size_t at) noexcept {
        timer* t = heap_[at];
        while (at > 0 && before(*t, *heap_[(at - 1) / 2])) {
            place(*heap_[(at - 1) / 2], at);
            at = (at - 1) / 2;
        }
        place(*t, at);
    }
    void sink(std::size_t at) noexcept {
        timer* t = heap_[at];
        for (;;) {
            std::size_t child = 2 * at + 1;
            if (child >= heap_.size()) break;
            if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
            if (!before(*heap_[child], *t)) break;
            place(*heap_[child], at);
            at = child;
        }
        place(*t, at);
    }

    std::vector<timer*> heap_;
    std::uint64_t next_sequence_ = 0;
};

} // namespace holdfast
