// compiles
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct full : coded {
    static constexpr job_options options{
        .name = "good.full",
        .queue = "mail",
        .priority = 5,
        .attempts = 100,
        .retry = {.delay = 1s, .backoff = backoff::linear, .max_delay = 1h, .jitter = false},
        .rules = {stop_on(errc::invalid_argument), retry_on(errc::unavailable)},
        .timeout = 30s,
        .hard_deadline = 5min,
        .policy = "smtp",
        .restart = restart::probe,
        .max_crashes = 0,
        .keep_for = 0s,
        .version = 2,
    };
};
struct base : coded {
    static constexpr restart restart_rule = restart::never;
};
struct small : base {
    static constexpr job_options options{.name = "good.small"};
};
static_assert(restart_of<small>() == restart::never);
struct nearer : base {
    static constexpr job_options options{.name = "good.nearer"};
    static constexpr restart restart_rule = restart::allowed;
};
static_assert(restart_of<nearer>() == restart::allowed);
struct own : base {
    static constexpr job_options options{.name = "good.own", .restart = restart::never}; // as its base
};
static_assert(restart_of<own>() == restart::never);

void blocking(small) {}
void with_context(small, job_context&) {}
result<void> with_token(small, std::stop_token) {
    return {};
}
task<void> coroutine(small) {
    co_return;
}
task<result<void>> coroutine_with_context(full, job_context&) {
    co_return result<void>{};
}
happened ask(full) {
    return happened::yes;
}
const auto a = job_type_of<small>(&blocking);
const auto b = job_type_of<small>(&with_context);
const auto c = job_type_of<small>(&with_token);
const auto d = job_type_of<small>(&coroutine);
const auto e = job_type_of<full>(&coroutine_with_context, &ask);
const auto f = job_type_of<nearer>([](const nearer&, const job_context&) {});
