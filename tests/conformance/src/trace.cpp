// The same seed on a virtual clock gives the same events on every runtime: compared with the simulated one.
#include "lab.hpp"

namespace holdfast::conformance {

namespace {

std::string line_of(const recorder::entry& e, time_point start) {
    std::string line = to_text(e.at - start) + " " + e.policy + "#" + std::to_string(e.execution) + " " +
                       std::string(to_text(e.kind)) + " " + std::to_string(e.attempt);
    if (e.end) line += " " + std::string(to_text(*e.end));
    if (e.reason) line += " " + std::string(to_text(*e.reason));
    if (e.delay) line += " delay " + to_text(*e.delay);
    if (e.code) line += " " + e.code.message();
    return line;
}

int fails_twice(attempt& a) {
    if (a.number() < 3) throw std::runtime_error("down");
    return a.number();
}
int always_fails(attempt&) {
    throw std::system_error(std::make_error_code(std::errc::connection_refused));
}

std::vector<std::string> play(lab& l) {
    auto& events = l.listen();
    const time_point start = l.rt().now();
    const auto jittered = l.add({.name = "jittered", .retry = {.max_attempts = 4, .delay = 100ms}});
    const auto timed =
        l.add({.name = "timed", .retry = {.max_attempts = 3, .delay = 50ms}, .timeout = 200ms, .total_timeout = 500ms});
    const auto guarded = l.add({.name = "guarded",
                                .retry = {.max_attempts = 6, .delay = 300ms, .on_circuit_open = true},
                                .breaker = {.consecutive_failures = 2, .break_for = 1s, .max_break_for = 3s}});
    const auto hedged = l.add({.name = "hedged", .hedge = {.max_hedges = 1, .after = 30ms}});

    for (int i = 0; i < 3; ++i) l.run(jittered, fails_twice);
    l.run(jittered, always_fails);
    l.run(timed, [](attempt& a) { return give_after(a, a.number() == 1 ? 1h : 20ms, 1); });
    l.run(timed, [](attempt& a) { return give_after(a, 1h, 1); });
    l.run(guarded, [](attempt& a) -> int {
        if (a.number() < 5) throw std::runtime_error("down");
        return a.number();
    });
    l.run(hedged, [](attempt& a) { return give_after(a, a.number() == 1 ? 100ms : 10ms, 1); });
    // The reference has one thread, where blocking calls end in the reverse order.
    if (l.which() == form::coroutine)
        l.run(hedged, [](attempt& a) { return give_after(a, a.number() == 1 ? 35ms : 10ms, 1); });
    l.run(hedged, [](attempt& a) { return fail_after(a, a.number() == 1 ? 5ms : 10ms, "down"); });
    std::stop_source source;
    {
        const alarm stop(l, 120ms, [&] { source.request_stop(); });
        l.run(jittered, always_fails, source.get_token());
    }
    // Side by side: whoever sleeps shortest goes on first.
    std::vector<task<outcome<int>>> together;
    for (int i = 0; i < 5; ++i) together.push_back(lab::start_async(jittered, i % 2 == 0 ? fails_twice : always_fails));
    l.await(when_all(std::move(together)));

    std::vector<std::string> lines;
    for (const auto& each : events.entries()) lines.push_back(line_of(each, start));
    return lines;
}

void same_trace(lab& l) {
    lab reference([] { return std::make_unique<simulated_runtime>(); }, l.how(), l.which());
    const auto expected = play(reference);
    const auto found = play(l);
    for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i)
        check_equal(found[i], expected[i], "event " + std::to_string(i + 1));
    check_equal(found.size(), expected.size(), "events in all");
    check(expected.size() > 100, "the scenario is worth comparing");
}

void another_seed(lab& l) {
    options other = l.how();
    other.seed += 1;
    const runtime_factory simulated = [] { return std::make_unique<simulated_runtime>(); };
    lab first(simulated, l.how(), l.which()), second(simulated, other, l.which());
    check(play(first) != play(second), "another seed gives another trace");
}

} // namespace

test_group trace_group() {
    return {"trace",
            {
                {1, "the same seed on a virtual clock gives the same events as the simulated runtime", same_trace},
                {2, "another seed gives other events", another_seed},
            }};
}

} // namespace holdfast::conformance
