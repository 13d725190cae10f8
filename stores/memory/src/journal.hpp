#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace holdfast::memory {

// How to take back what was written since recording began. Off, it costs nothing.
class journal {
public:
    bool recording() const noexcept { return recording_; }
    void record() noexcept { recording_ = true; }
    void note(std::function<void()> undo) {
        if (recording_) undo_.push_back(std::move(undo));
    }
    void keep() noexcept {
        recording_ = false;
        undo_.clear();
    }
    void take_back() {
        recording_ = false;
        for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
    }

private:
    bool recording_ = false;
    std::vector<std::function<void()>> undo_;
};

} // namespace holdfast::memory
