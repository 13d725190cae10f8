// What the tests of exception policies share.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <holdfast/exception_decision.hpp>

namespace holdfast::test {

struct smtp_error : std::runtime_error {
    explicit smtp_error(int code = 451) : std::runtime_error("smtp " + std::to_string(code)), code(code) {}
    bool transient() const noexcept { return code < 500; }
    int code;
};
struct bad_address : smtp_error {
    bad_address() : smtp_error(550) {}
};

using action = exception_decision::action;
using reason = exception_decision::reason;

inline exception_table table_of(const exception_policy& rules) {
    return resolve({.consumer = &rules});
}

template <class E>
exception_decision decide_on(const exception_table& table, E thrown, const exception_history& so_far = {},
                             std::uint64_t seed = 1) {
    const auto held = std::make_exception_ptr(std::move(thrown));
    random_series random(seed);
    return decide(table, failure::thrown(held), so_far, random);
}
template <class T>
exception_decision decide_on_returned(const exception_table& table, const T& returned) {
    random_series random(1);
    return decide(table, failure::returned(returned), {}, random);
}

// Which rule takes it; -1 for none.
template <class E>
int rule_for(const exception_table& table, E thrown) {
    const auto held = std::make_exception_ptr(std::move(thrown));
    const auto found = table.find(failure::thrown(held));
    return found ? static_cast<int>(*found) : -1;
}
template <class T>
int rule_for_returned(const exception_table& table, const T& returned) {
    const auto found = table.find(failure::returned(returned));
    return found ? static_cast<int>(*found) : -1;
}

// All that becomes of a message that never succeeds: "retry 200ms", "redeliver 5m", …, "dead letter".
template <class E>
std::vector<std::string> life_of(const exception_table& table, E thrown, std::uint64_t seed = 1) {
    std::vector<std::string> life;
    exception_history so_far;
    const auto held = std::make_exception_ptr(std::move(thrown));
    random_series random(seed);
    for (;;) {
        const auto next = decide(table, failure::thrown(held), so_far, random);
        const bool again = next.what == action::retry || next.what == action::redeliver;
        life.push_back(std::string(to_text(next.what)) + (again ? " " + to_text(next.after) : ""));
        if (!again) return life;
        so_far.add(next);
    }
}

} // namespace holdfast::test
