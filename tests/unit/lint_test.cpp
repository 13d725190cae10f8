#include <climits>
#include <string>
#include <vector>

#include <holdfast/lint.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

std::string findings(const policy_options& options) {
    std::string text;
    for (const auto& each : lint(options)) text += each + "\n";
    return text;
}
std::string findings(const std::vector<policy>& chain) {
    std::string text;
    for (const auto& each : lint(chain)) text += each + "\n";
    return text;
}

constexpr policy calm({.name = "calm", .retry = {.max_attempts = 2, .delay = 1s}, .timeout = 2s});
constexpr policy outer({.name = "outer", .retry = {.max_attempts = 3, .delay = 1s}, .timeout = 1min});
constexpr policy bare({.name = "bare"});
constexpr policy thrice({.name = "thrice", .retry = {.max_attempts = 2}, .total_timeout = 5min});
constexpr policy endless({.name = "endless", .retry = {.max_attempts = unlimited}});

} // namespace

TEST_CASE("the most calls that one execution makes") {
    CHECK(worst_case_calls({.name = "p"}) == 1);
    CHECK(worst_case_calls({.name = "p", .retry = {.max_attempts = 4}}) == 5);
    CHECK(worst_case_calls({.name = "p", .retry = {.delay = 1s}}) == 4);
    CHECK(worst_case_calls({.name = "p", .retry = {.intervals = {1s, 2s}}}) == 3);
    CHECK(worst_case_calls({.name = "p", .hedge = {.max_hedges = 2}}) == 3);
    CHECK_FALSE(worst_case_calls({.name = "p", .retry = {.max_attempts = unlimited}}));
    CHECK(worst_case_calls({.name = "p", .retry = {.max_attempts = INT_MAX}}) == static_cast<long>(INT_MAX) + 1);
}

TEST_CASE("the longest that one execution takes is every timeout and every delay") {
    CHECK_FALSE(worst_case_duration({.name = "p"}));
    CHECK(worst_case_duration({.name = "p", .timeout = 3s}) == 3s);
    CHECK(worst_case_duration({.name = "p", .total_timeout = 7s}) == 7s);
    // 4 calls of 3s, delays of 1s, 2s, 4s
    CHECK(worst_case_duration({.name = "p", .retry = {.delay = 1s}, .timeout = 3s}) == 19s);
    CHECK(worst_case_duration({.name = "p", .retry = {.delay = 1s, .jitter = false}, .timeout = 3s}) == 19s);
    CHECK(worst_case_duration({.name = "p", .retry = {.delay = 1s, .backoff = backoff::linear}, .timeout = 3s}) == 18s);
    CHECK(worst_case_duration({.name = "p", .retry = {.delay = 1s, .backoff = backoff::constant}, .timeout = 3s}) ==
          15s);
    // capped: 1s 2s 2s 2s 2s
    CHECK(worst_case_duration(
              {.name = "p", .retry = {.max_attempts = 5, .delay = 1s, .max_delay = 2s}, .timeout = 1s}) == 15s);
    CHECK(worst_case_duration({.name = "p",
                               .retry = {.max_attempts = 6, .delay = 1s, .backoff = backoff::linear, .max_delay = 3s},
                               .timeout = 1s}) == 22s); // 7 calls, 1 2 3 3 3 3
    CHECK(worst_case_duration({.name = "p", .retry = {.intervals = {1s, 10s}}, .timeout = 1s}) == 14s);
    CHECK(worst_case_duration({.name = "p", .retry = {.delay = 1s}, .timeout = 3s, .total_timeout = 5s}) == 5s);
    CHECK(worst_case_duration({.name = "p", .timeout = 3s, .hedge = {.max_hedges = 2, .after = 500ms}}) == 4s);
    CHECK_FALSE(worst_case_duration({.name = "p", .retry = {.max_attempts = unlimited}, .timeout = 3s}));
    CHECK(worst_case_duration({.name = "p", .retry = {.max_attempts = unlimited}, .total_timeout = 3s}) == 3s);
    CHECK_FALSE(worst_case_duration({.name = "p", .timeout = forever}));
}

TEST_CASE("the worst case of absurd numbers is found at once") {
    const auto kind = GENERATE(backoff::constant, backoff::linear, backoff::exponential);
    const auto delay = GENERATE(duration{0s}, duration{1ns}, duration{200ms});
    INFO(to_text(kind) << ' ' << to_text(delay));
    const auto longest =
        worst_case_duration({.name = "p",
                             .retry = {.max_attempts = INT_MAX, .delay = delay, .backoff = kind, .max_delay = 24h},
                             .timeout = 1ns});
    const duration calls{static_cast<std::int64_t>(INT_MAX) + 1};
    if (delay == 0s) CHECK(longest == calls);
    else if (kind == backoff::constant && delay == 1ns) CHECK(longest == calls + duration{INT_MAX});
    else if (kind == backoff::linear && delay == 1ns) // n(n+1)/2
        CHECK(longest ==
              calls + duration{static_cast<std::int64_t>(INT_MAX) * (static_cast<std::int64_t>(INT_MAX) + 1) / 2});
    else CHECK((!longest || *longest > calls));
}

TEST_CASE("a policy that is fine has no findings") {
    CHECK(findings(calm.options()).empty());
    CHECK(findings(bare.options()).empty());
    CHECK(findings({.name = "p", .timeout = 3s, .hedge = {.max_hedges = 1}}).empty());
}

TEST_CASE("retries without any limit are found") {
    CHECK(findings(endless.options()) == "policy \"endless\" retries without limit; give it a total_timeout\n");
    CHECK(findings({.name = "p", .retry = {.max_attempts = unlimited}, .timeout = 1s}) ==
          "policy \"p\" retries without limit; give it a total_timeout\n");
    CHECK(findings({.name = "p", .retry = {.max_attempts = unlimited}, .total_timeout = 1min}).empty());
}

TEST_CASE("retries of attempts that nothing limits are found") {
    CHECK(findings({.name = "p", .retry = {.max_attempts = 2}}) ==
          "policy \"p\" retries, but nothing limits one attempt; give it a timeout or a total_timeout\n");
}

TEST_CASE("a long worst case is found, and told") {
    CHECK(findings({.name = "p",
                    .retry = {.max_attempts = 4, .delay = 5min, .backoff = backoff::constant},
                    .timeout = 1s}) == "policy \"p\" can take 20m in the worst case; a total_timeout would bound it\n");
    CHECK(findings({.name = "p", .timeout = 10min}).empty());
    CHECK(findings({.name = "p", .timeout = 10min + 1s}) ==
          "policy \"p\" can take 10m in the worst case; a total_timeout would bound it\n");
}

TEST_CASE("very many calls are found") {
    const auto with = [](int attempts) {
        return findings(
            {.name = "p", .retry = {.max_attempts = attempts, .delay = 1ms, .max_delay = 1ms}, .timeout = 1ms});
    };
    CHECK(with(19).empty());
    CHECK(with(20) == "policy \"p\" makes up to 21 calls; fewer with a longer delay are kinder to what is failing\n");
}

TEST_CASE("retries without jitter are found, where there are several") {
    const auto with = [](int attempts) {
        return findings({.name = "p", .retry = {.max_attempts = attempts, .jitter = false}, .timeout = 1s});
    };
    CHECK(with(1).empty());
    CHECK(with(2) == "policy \"p\" retries without jitter: callers that fail together come back together\n");
    CHECK(findings({.name = "p", .retry = {.intervals = {1s, 2s, 3s}}, .timeout = 1s}).empty());
}

TEST_CASE("a budget that nothing spends is found") {
    CHECK(findings({.name = "p", .budget = {.ratio = .1}}) ==
          "policy \"p\" has a retry budget and nothing that would spend it\n");
    CHECK(findings({.name = "p", .timeout = 1s, .budget = {.ratio = .1}, .hedge = {.max_hedges = 1}}).empty());
}

TEST_CASE("policies around each other multiply their calls") {
    CHECK(findings({calm, thrice}).empty()); // 9 calls
    CHECK(findings({outer, calm}) == "outer > calm multiply to up to 12 calls; retry at one layer only\n");
    CHECK(findings({outer}).empty());
    CHECK(findings(std::vector<policy>{}).empty());
    CHECK(findings({endless, bare}) == "policy \"endless\" retries without limit; give it a total_timeout\n"
                                       "endless > bare multiply to unlimited calls; retry at one layer only\n");
}

TEST_CASE("policies around each other add up their time, as far as the outer one does not bound it") {
    constexpr policy slow(
        {.name = "slow", .retry = {.max_attempts = 1, .delay = 1min, .max_delay = 1min}, .timeout = 2min});
    constexpr policy again({.name = "again", .retry = {.max_attempts = 2, .delay = 1s}});
    const std::string nothing_limits =
        "policy \"again\" retries, but nothing limits one attempt; give it a timeout or a total_timeout\n";
    CHECK(findings({again, slow}) == nothing_limits + "again > slow together can take 15m\n");
    CHECK(findings({thrice, slow}).empty());
}

TEST_CASE("an outer policy without end makes no promise of time") {
    constexpr policy long_one({.name = "long", .timeout = 20min});
    const std::string text = findings({endless, long_one});
    CHECK(text.find("together can take") == std::string::npos);
}
