#include <chrono>

#include <holdfast/exception_explain.hpp>

namespace holdfast {

namespace {

constexpr long many_calls = 20;
constexpr duration long_slot = std::chrono::minutes{1};
constexpr duration long_life = std::chrono::hours{24};

} // namespace

std::vector<std::string> lint(const exception_table& table) {
    std::vector<std::string> findings;
    for (const auto& [rule, where] : table.rules()) {
        const std::string name = describe(rule) + " of the " + std::string(where);
        const auto worst = worst_case(rule, table.max_total_attempts());
        if (worst.cut)
            findings.push_back(name + " asks for more than " + std::to_string(worst.calls) +
                               " calls, which max_total_attempts does not let it make");
        else if (worst.calls > many_calls)
            findings.push_back(name + " makes up to " + std::to_string(worst.calls) +
                               " calls, for retries and redeliveries multiply; fewer with a longer delay are kinder "
                               "to what is failing");
        if (worst.slot_for > long_slot)
            findings.push_back(name + " keeps a slot for up to " + to_short_text(worst.slot_for) +
                               " while it waits between retries; redeliver() frees it");
        if (worst.waits > long_life)
            findings.push_back(name + " can take " + to_short_text(worst.waits) + " until it is a dead letter");
    }
    return findings;
}

} // namespace holdfast
