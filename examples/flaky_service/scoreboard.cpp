#include "scoreboard.hpp"

#include <algorithm>
#include <cstdio>

#include "narrator.hpp"

namespace demo {

void score::add(bool answered, holdfast::duration took) {
    const std::lock_guard lock(mutex_);
    ++attempts_;
    ++(answered ? first_time_ : failed_);
    if (!answered) in_vain_ += took;
    took_.push_back(took);
}

void score::add(const holdfast::outcome<void>& ended, holdfast::duration took) {
    const std::lock_guard lock(mutex_);
    attempts_ += ended.attempt_count();
    if (ended) ++(ended.attempt_count() == 1 ? first_time_ : after_retries_);
    else ++(ended.refusal() == holdfast::errc::circuit_open ? refused_ : failed_);
    if (!ended) in_vain_ += took;
    took_.push_back(took);
}

holdfast::duration score::percentile(int percent) const {
    if (took_.empty()) return {};
    auto sorted = took_;
    std::ranges::sort(sorted);
    return sorted[(sorted.size() - 1) * static_cast<std::size_t>(percent) / 100];
}

std::string in_seconds(holdfast::duration d) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.1fs", std::chrono::duration<double>(d).count());
    return text;
}

namespace {

void print_row(std::string_view label, std::span<const score* const> scores, const auto& cell,
               colour c = colour::plain) {
    char left[64];
    std::snprintf(left, sizeof(left), "  %-34.*s", static_cast<int>(label.size()), label.data());
    std::string row = left;
    for (const score* each : scores) {
        const std::string text = cell(*each);
        char right[32];
        std::snprintf(right, sizeof(right), "%18s", text.c_str());
        row += right;
    }
    std::printf("%s\n", painted(row, c).c_str());
}

} // namespace

void print_table(std::span<const score* const> scores) {
    const std::string rule = "  " + std::string(34 + 18 * scores.size(), '-');
    const auto number = [](int (score::*of)() const) {
        return [of](const score& s) { return std::to_string((s.*of)()); };
    };
    const auto time = [](int percent) {
        return [percent](const score& s) { return holdfast::to_short_text(s.percentile(percent)); };
    };
    std::printf("\n");
    print_row("", scores, [](const score& s) { return s.title; }, colour::bold);
    std::printf("%s\n", rule.c_str());
    print_row("calls", scores, number(&score::calls));
    print_row("  answered at the first attempt", scores, number(&score::first_time), colour::green);
    print_row("  answered after retries", scores, number(&score::after_retries), colour::green);
    print_row("  refused by the open circuit", scores, number(&score::refused), colour::cyan);
    print_row("  failed", scores, number(&score::failed), colour::red);
    std::printf("%s\n", rule.c_str());
    print_row("requests that reached the service", scores, [](const score& s) { return std::to_string(s.sent); });
    print_row("  of those, while it was down", scores, [](const score& s) { return std::to_string(s.sent_sick); });
    print_row("latency of a call, p50", scores, time(50));
    print_row("                   p99", scores, time(99));
    print_row("time callers waited for nothing", scores, [](const score& s) { return in_seconds(s.waited_in_vain()); });
    std::printf("\n");
}

} // namespace demo
