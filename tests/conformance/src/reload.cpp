// Cases 48 to 50: reload, binding, events.
#include <atomic>
#include <map>

#include "breaker.hpp"

namespace holdfast::conformance {

namespace {

void reload_in_flight(lab& l) {
    const policy_options before{
        .name = "changing", .retry = {.max_attempts = 2, .delay = 1s, .backoff = backoff::constant, .jitter = false}};
    policy_options after = before, other{.name = "other", .retry = {.max_attempts = 1, .delay = 0ms}},
                   other_after = other;
    after.retry.max_attempts = 4;
    after.retry.delay = 2s;
    other_after.retry.max_attempts = 7;
    const auto p = l.add(before), q = l.add(other);
    auto& catalog = l.engine().catalog();
    {
        std::optional<bool> taken;
        const alarm reload(l, 500ms, [&] { taken = catalog.replace({after}).has_value(); });
        const auto o = l.run(p, break_down);
        check_equal(taken, true, "the change was taken");
        check_equal(o.attempt_count(), 3, "attempts of the call under way");
        check_equal(l.now(), duration(2s), "when the call under way ended");
    }
    check_equal(l.run(p, break_down).attempt_count(), 5, "attempts of a new call");
    check_equal(l.now(), duration(10s), "when the new call ended");
    check_equal(p.options().retry.max_attempts, after.retry.max_attempts, "the policy in force");

    policy_options invalid = after;
    invalid.retry.delay = -1s;
    for (const auto& bad :
         {std::vector{other_after, invalid}, std::vector{other_after, policy_options{.name = "nobody"}}}) {
        check(!catalog.replace(bad).has_value(), "a change with one bad policy is refused");
        check_equal(l.run(q, break_down).attempt_count(), 2,
                    "attempts after the refused change, of the good one in it");
        check_equal(l.run(p, break_down).attempt_count(), 5, "attempts after the refused change, of the other");
    }
    check_equal(catalog.replace({invalid}).error().code, errc::invalid_policy, "why an invalid policy is refused");
    check_equal(catalog.replace({{.name = "nobody"}}).error().code, errc::unknown_policy,
                "why an unknown policy is refused");
    check(catalog.replace({other_after, before}).has_value(), "a later change is taken");
    check_equal(l.run(q, break_down).attempt_count(), 8, "attempts after the later change");
    check_equal(l.run(p, break_down).attempt_count(), 3, "attempts after changing back");

    const policy_options guarded{.name = "guarded", .breaker = {.consecutive_failures = 3}};
    policy_options stricter = guarded;
    stricter.timeout = 1min;
    const auto g = l.add(guarded);
    fail_times(l, g, 2);
    check(catalog.replace({stricter}).has_value(), "the change is taken");
    fail_times(l, g, 1);
    check_equal(g.circuit(), circuit_state::open, "circuit: failures before the change still count");
    check(catalog.replace({guarded}).has_value(), "the change is taken");
    check_refused(l, g, std::nullopt, "a circuit that was open before the change");
}

void names_at_bind(lab& l) {
    l.add({.name = "known-policy"});
    const auto unknown = thrown_by([&] { l.bind("known-polcy"); });
    const auto* error = detail::exception_as<failed>(unknown);
    check(error != nullptr, "binding an unknown name throws failed");
    check_equal(error->code(), errc::unknown_policy, "why an unknown name cannot be bound");
    check(std::string_view(error->what()).find("known-policy") != std::string_view::npos,
          "the message gives the nearest name");
    check(!l.engine().runner().bind("nobody").has_value(), "the runner refuses an unknown name as a value");
    const auto twice = l.engine().catalog().add({.name = "known-policy", .timeout = 1s});
    check(!twice.has_value(), "a name that is taken is refused");
    check_equal(twice.error().code, errc::duplicate, "why a name that is taken is refused");
    check(!l.bind("known-policy").options().timeout, "the first policy of that name stays");
}

class thrower final : public execution_listener {
public:
    void on_event(const execution_event&) override { throw std::runtime_error("listener"); }
};

void check_history(const std::vector<recorder::entry>& entries, std::size_t executions) {
    struct history {
        int started = 0, ended = 0, completed = 0;
    };
    std::map<std::uint64_t, history> all;
    for (const auto& each : entries) {
        if (each.execution == 0) continue;
        auto& h = all[each.execution];
        check_equal(h.completed, 0, "events after the terminal one");
        switch (each.kind) {
        case event_kind::attempt_started:
            check_equal(each.attempt, ++h.started, "number of the attempt that started");
            break;
        case event_kind::attempt_ended:
            if (each.end == attempt_end::refused) break; // it was never started
            check_equal(each.attempt, ++h.ended, "number of the attempt that ended");
            break;
        case event_kind::completed:
            ++h.completed;
            check_equal(each.attempt, h.started, "attempts in the terminal event");
            check(each.reason.has_value(), "the terminal event has a reason");
            break;
        default: break;
        }
    }
    check_equal(all.size(), executions, "executions that were told of");
    for (const auto& [id, h] : all) {
        check_equal(h.completed, 1, "terminal events of execution " + std::to_string(id));
        check_equal(h.ended, h.started, "attempts that ended in execution " + std::to_string(id));
    }
}

void happy_path_allocates_nothing(lab& l) {
    const auto p = l.add({.name = "happy",
                          .retry = {.max_attempts = 3},
                          .timeout = 1min,
                          .total_timeout = 1h,
                          .breaker = {.failure_ratio = 0.5},
                          .concurrency = {.limit = 10, .queue = 10},
                          .rate = {.permits = 1'000'000},
                          .budget = {.ratio = 0.1, .reserve = 1}});
    const auto call = [&] { l.execute(p, [](attempt& a) { return a.number(); }); };
    for (int i = 0; i < 100; ++i) call();
    const std::size_t before = l.how().allocations();
    for (int i = 0; i < 1000; ++i) call();
    check_equal(l.how().allocations() - before, 0U, "allocations of a thousand calls that succeed");
}

void events(lab& l) {
    if (l.how().allocations) happy_path_allocates_nothing(l); // before anybody listens
    auto& seen = l.listen();
    l.engine().runner().listen(std::make_shared<thrower>());
    const auto p = l.add({.name = "watched",
                          .retry = {.max_attempts = 2, .delay = 1s, .jitter = false},
                          .timeout = 10s,
                          .rate = {.permits = 6, .per = 1h}});
    const auto guarded = l.add({.name = "guarded",
                                .retry = {.max_attempts = 4, .delay = 1s, .jitter = false},
                                .breaker = {.consecutive_failures = 2}});
    std::stop_source stopped;
    stopped.request_stop();
    check_equal(*l.run(p, succeed), 1, "value with a listener that throws");
    check_equal(l.run(p, break_down).attempt_count(), 3, "attempts with a listener that throws");
    check_equal(*l.run(p, [](attempt& a) { return give_after(a, a.number() == 1 ? 1h : 1s, a.number()); }), 2,
                "value after a timeout");
    check_equal(l.run(p, succeed, stopped.get_token()).stop_reason(), stop_reason::cancelled,
                "stop reason of a cancelled call");
    check(l.run_or(p, break_down, fallback([] { return 9; })).fell_back(), "a call falls back");
    for (int i = 0; i < 2; ++i) l.run(p, succeed);
    check_equal(l.run(p, succeed).stop_reason(), stop_reason::rejected, "stop reason of a rejected call");
    check_equal(l.run(guarded, break_down).stop_reason(), stop_reason::circuit_open,
                "stop reason of a call that opens the circuit");
    check_equal(l.run(guarded, succeed).stop_reason(), stop_reason::circuit_open,
                "stop reason of a call on an open circuit");
    check_history(seen.entries(), 10);
    check_equal(seen.count(event_kind::rejected), 1, "rejections that were told of");
    check_equal(seen.count(event_kind::circuit_opened), 1, "circuits that opened");
}

} // namespace

test_group reload_group() {
    return {
        "reload",
        {
            {48, "calls under way finish on the old policy, new ones use the new, and a bad reload is refused whole",
             reload_in_flight},
            {49, "an unknown name fails at bind, a duplicate when it is added", names_at_bind},
            {50, "every execution has one terminal event and contiguous attempts, and listeners change nothing",
             events},
        }};
}

} // namespace holdfast::conformance
