// What became of the calls of one contestant, and all contestants side by side.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <holdfast/outcome.hpp>

namespace demo {

// Any thread.
class score {
public:
    explicit score(std::string title) : title(std::move(title)) {}

    // A call without a policy: it has one attempt.
    void add(bool answered, holdfast::duration took);
    void add(const holdfast::outcome<void>& ended, holdfast::duration took);

    // Only when all calls have ended.
    int calls() const { return static_cast<int>(took_.size()); }
    int answered() const { return first_time_ + after_retries_; }
    holdfast::duration percentile(int percent) const;
    holdfast::duration waited_in_vain() const { return in_vain_; }

    const std::string title;
    int sent = 0;      // requests that the service counted
    int sent_sick = 0; // of those, while it was down

    int first_time() const { return first_time_; }
    int after_retries() const { return after_retries_; }
    int refused() const { return refused_; }
    int failed() const { return failed_; }
    int attempts() const { return attempts_; }

private:
    std::mutex mutex_;
    int first_time_ = 0;
    int after_retries_ = 0;
    int refused_ = 0;
    int failed_ = 0;
    int attempts_ = 0;
    holdfast::duration in_vain_{};
    std::vector<holdfast::duration> took_;
};

std::string in_seconds(holdfast::duration d);
void print_table(std::span<const score* const> scores);

} // namespace demo
