// Work in line, first in first out, linked through work::next. Not thread-safe, allocates nothing.
#pragma once

#include <utility>

#include <holdfast/runtime.hpp>

namespace holdfast::detail {

class work_list {
public:
    bool empty() const noexcept { return head_ == nullptr; }

    void push(work& w) noexcept {
        w.next = nullptr;
        (head_ == nullptr ? head_ : tail_->next) = &w;
        tail_ = &w;
    }

    // Null when empty.
    work* pop() noexcept {
        work* first = head_;
        if (first != nullptr) head_ = std::exchange(first->next, nullptr);
        return first;
    }

private:
    work* head_ = nullptr;
    work* tail_ = nullptr;
};

} // namespace holdfast::detail
