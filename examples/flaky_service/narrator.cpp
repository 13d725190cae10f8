#include "narrator.hpp"

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace demo {

using holdfast::attempt_end;
using holdfast::event_kind;
using holdfast::execution_event;
using holdfast::stop_reason;
using holdfast::to_short_text;

namespace {

bool wants_colour() {
    const char* no = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
    return ::isatty(STDOUT_FILENO) == 1 && (no == nullptr || *no == '\0') && !dumb;
}

std::string_view code_of(colour c) {
    switch (c) {
    case colour::plain: return "";
    case colour::dim: return "\033[2m";
    case colour::green: return "\033[32m";
    case colour::yellow: return "\033[33m";
    case colour::red: return "\033[31m";
    case colour::cyan: return "\033[36m";
    case colour::bold: return "\033[1m";
    }
    return "";
}

std::string number(int n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

} // namespace

std::string painted(std::string_view text, colour c) {
    static const bool wanted = wants_colour();
    if (!wanted || c == colour::plain) return std::string(text);
    return std::string(code_of(c)) + std::string(text) + "\033[0m";
}

void narrator::line(holdfast::time_point at, std::string_view who, std::string_view text, colour c) const {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(at - opening_).count();
    char left[64];
    std::snprintf(left, sizeof(left), "%3d.%03d  %-9.*s ", static_cast<int>(ms / 1000), static_cast<int>(ms % 1000),
                  static_cast<int>(who.size()), who.data());
    std::printf("%s%s\n", painted(left, colour::dim).c_str(), painted(text, c).c_str());
    std::fflush(stdout);
}

void narrator::tell(const execution_event& e, std::string_view text, colour c) {
    line(e.at, "call " + std::to_string(calls_[e.execution].number), text, c);
}

void narrator::banner(holdfast::time_point at, std::string_view text, colour c) {
    line(at, "circuit", text, c);
}

void narrator::announce(std::string_view text, holdfast::time_point at) {
    const std::lock_guard lock(mutex_);
    line(at, "--------", text, colour::bold);
}

void narrator::pulse(holdfast::time_point at) {
    const std::lock_guard lock(mutex_);
    if (answered_at_once_ > 0)
        line(at, "", number(answered_at_once_, "call") + " answered at the first attempt", colour::green);
    if (refused_ > 0) line(at, "", number(refused_, "call") + " refused at once by the open circuit", colour::cyan);
    answered_at_once_ = refused_ = 0;
}

void narrator::attempt_ended(const execution_event& e) {
    call& of = calls_[e.execution];
    of.failure = "attempt " + std::to_string(e.attempt) + " ";
    if (e.end == attempt_end::timed_out) of.failure += "timed out after " + to_short_text(*e.took);
    else if (e.end == attempt_end::failed) of.failure += "failed: " + holdfast::detail::exception_message(e.exception);
    else of.failure += to_text(*e.end);
}

void narrator::completed(const execution_event& e) {
    const call& of = calls_[e.execution];
    const std::string took = to_short_text(e.at - of.began);
    if (e.reason == stop_reason::succeeded && e.attempt == 1) ++answered_at_once_;
    else if (e.reason == stop_reason::succeeded)
        tell(e, "answered at attempt " + std::to_string(e.attempt) + ", after " + took, colour::green);
    else if (e.reason == stop_reason::circuit_open && e.attempt == 0) ++refused_;
    else if (e.reason == stop_reason::circuit_open) tell(e, "given up: the circuit opened meanwhile", colour::cyan);
    else tell(e, of.failure + "; given up after " + took + ": " + std::string(to_text(*e.reason)), colour::red);
    calls_.erase(e.execution);
}

void narrator::on_event(const execution_event& e) {
    if (e.policy != policy_) return;
    const std::lock_guard lock(mutex_);
    if (e.execution != 0 && !calls_.contains(e.execution)) calls_[e.execution] = {++last_number_, {}, e.at};
    switch (e.kind) {
    case event_kind::attempt_ended: return attempt_ended(e);
    case event_kind::retry_scheduled:
        return tell(e, calls_[e.execution].failure + "; next in " + to_short_text(*e.delay), colour::yellow);
    case event_kind::completed: return completed(e);
    case event_kind::circuit_opened:
        ++opened_;
        return banner(e.at, "OPEN for " + to_short_text(*e.delay) + ": no call reaches the service", colour::red);
    case event_kind::circuit_half_opened: return banner(e.at, "HALF-OPEN: two calls may probe", colour::yellow);
    case event_kind::circuit_closed: ++closed_; return banner(e.at, "CLOSED: back to normal", colour::green);
    default: return;
    }
}

int narrator::times_opened() const {
    const std::lock_guard lock(mutex_);
    return opened_;
}

int narrator::times_closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
}

} // namespace demo
