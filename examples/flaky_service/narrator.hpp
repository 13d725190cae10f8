// Tells what happens, as it happens, one line each.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <holdfast/listener.hpp>

namespace demo {

enum class colour : unsigned char { plain, dim, green, yellow, red, cyan, bold };

// Paints only where a person looks: on a terminal, unless NO_COLOR is set.
std::string painted(std::string_view text, colour c);

// Listens to one policy. Calls that succeed at the first attempt, and calls that an open circuit refuses, are told of
// in numbers now and then.
class narrator final : public holdfast::execution_listener {
public:
    narrator(std::string_view policy, holdfast::time_point opening) : policy_(policy), opening_(opening) {}

    void on_event(const holdfast::execution_event& e) override;
    // From the stage: a new chapter, a pulse.
    void announce(std::string_view text, holdfast::time_point at);
    void pulse(holdfast::time_point at);

    int times_opened() const;
    int times_closed() const;

private:
    struct call {
        int number = 0;
        std::string failure;
        holdfast::time_point began;
    };

    void tell(const holdfast::execution_event& e, std::string_view text, colour c);
    void line(holdfast::time_point at, std::string_view who, std::string_view text, colour c) const;
    void banner(holdfast::time_point at, std::string_view text, colour c);
    void attempt_ended(const holdfast::execution_event& e);
    void completed(const holdfast::execution_event& e);

    const std::string policy_;
    const holdfast::time_point opening_;
    mutable std::mutex mutex_;
    std::map<std::uint64_t, call> calls_; // under way
    int last_number_ = 0;
    int answered_at_once_ = 0;
    int refused_ = 0;
    int opened_ = 0;
    int closed_ = 0;
};

} // namespace demo
