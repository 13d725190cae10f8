#include "view.hpp"

#include <cstdio>
#include <iostream>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t bar_length = 30;

std::string bar(const desk_numbers& now) {
    if (now.total == 0) return std::string(bar_length, '.');
    const auto filled = now.ended() * bar_length / now.total;
    return std::string(filled, '#') + std::string(bar_length - filled, '.');
}

// "  attempts 1:9 2:4"
std::string attempts_text(const std::map<int, int>& attempts) {
    std::string text;
    for (const auto& [number, count] : attempts)
        text += (text.empty() ? "  attempts " : " ") + std::to_string(number) + ":" + std::to_string(count);
    return text;
}

} // namespace

desk_numbers add_up(const std::vector<holdfast::job_count>& counts) {
    desk_numbers sum;
    for (const auto& each : counts) {
        sum.total += each.count;
        switch (each.state) {
        case holdfast::job_state::scheduled:
        case holdfast::job_state::pending: sum.waiting += each.count; break;
        case holdfast::job_state::processing: sum.running += each.count; break;
        case holdfast::job_state::waiting_retry: sum.retrying += each.count; break;
        case holdfast::job_state::succeeded: sum.sent += each.count; break;
        case holdfast::job_state::dead_letter: sum.dead += each.count; break;
        default: sum.other += each.count;
        }
    }
    return sum;
}

live_view::live_view()
    : terminal_(::isatty(STDOUT_FILENO) == 1), began_(std::chrono::steady_clock::now()), last_(began_) {}

double live_view::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

std::string live_view::line(const desk_numbers& now) {
    char text[240];
    std::snprintf(text, sizeof(text),
                  "%5.1fs [%s] waiting %3llu  at work %2llu  retrying %3llu  sent %3llu  dead %2llu  %3.0f/s%s",
                  seconds(), bar(now).c_str(), static_cast<unsigned long long>(now.waiting),
                  static_cast<unsigned long long>(now.running), static_cast<unsigned long long>(now.retrying),
                  static_cast<unsigned long long>(now.sent), static_cast<unsigned long long>(now.dead), rate_,
                  attempts_text(now.attempts).c_str());
    return text;
}

bool live_view::is_due(const desk_numbers& now) const {
    return std::chrono::steady_clock::now() - last_ >= (terminal_ ? 100ms : 1000ms) || now.ended() == now.total;
}

void live_view::show(const desk_numbers& now) {
    const auto present = std::chrono::steady_clock::now();
    const auto since = present - last_;
    const double seconds_since = std::chrono::duration<double>(since).count();
    rate_ = static_cast<double>(now.ended() - ended_before_) / seconds_since;
    ended_before_ = now.ended();
    last_ = present;
    std::cout << (terminal_ ? "\r\x1b[K" : "") << line(now) << (terminal_ ? "" : "\n") << std::flush;
    open_ = terminal_;
}

void live_view::say(std::string_view sentence) {
    char time[16];
    std::snprintf(time, sizeof(time), "%5.1fs ", seconds());
    end();
    std::cout << time << sentence << std::endl;
}

void live_view::end() {
    if (open_) std::cout << "\n";
    open_ = false;
}
