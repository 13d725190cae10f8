// What several unit tests share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/simulated_runtime.hpp>

namespace holdfast::test {

inline constexpr std::uint64_t seed = 20240607;

// A simulated runtime with an engine on it.
struct bench {
    explicit bench(std::uint64_t order = 0) : on(order), made(on, seed) {}
    template <class... Policy>
    explicit bench(const policy& first, const Policy&... more) : bench() {
        made.add(first, more...);
    }

    holdfast::policies& policies() { return made.policies(); }
    duration elapsed() const { return on.now() - start; }

    simulated_runtime on;
    time_point start = on.now();
    engine made;
};

// Keeps what it is told, as values.
class recorder final : public execution_listener {
public:
    struct seen {
        event_kind kind;
        std::string policy;
        std::string key;
        std::uint64_t execution;
        time_point at;
        int attempt;
        std::optional<attempt_end> end;
        std::optional<stop_reason> reason;
        std::optional<duration> delay;
        std::error_code code;
    };

    void on_event(const execution_event& e) override {
        events.push_back({e.kind, std::string(e.policy), std::string(e.key), e.execution, e.at, e.attempt, e.end,
                          e.reason, e.delay, e.code});
    }

    // "attempt started 1, attempt ended 1 failed, …"
    std::string story() const {
        std::string text;
        for (const seen& each : events) {
            if (!text.empty()) text += ", ";
            text += to_text(each.kind);
            if (each.attempt > 0) text += " " + std::to_string(each.attempt);
            if (each.end) text += " " + std::string(to_text(*each.end));
            if (each.delay) text += " " + to_text(*each.delay);
            if (each.reason) text += " " + std::string(to_text(*each.reason));
        }
        return text;
    }

    std::vector<seen> events;
};

inline std::shared_ptr<recorder> listen_to(engine& made) {
    auto listener = std::make_shared<recorder>();
    made.runner().listen(listener);
    return listener;
}

} // namespace holdfast::test
