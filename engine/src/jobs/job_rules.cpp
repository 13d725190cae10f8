#include "job_rules.hpp"

#include <algorithm>
#include <holdfast/exception_explain.hpp>
#include <holdfast/exception_policy.hpp>
#include <limits>

namespace holdfast::job_rules {

namespace {

bool says_something(const job_options& o) {
    return !o.rules.empty() || o.retry.enabled();
}

bool names_exceptions(const rule_list& rules) {
    return std::ranges::any_of(rules, [](const rule& each) {
        return each.then == rule::verdict::retry && each.on == rule::subject::exception_type;
    });
}

// The options of a job as policies. As for a resilience policy: stop rules first, then retry rules, then the rest. But
// a returned failure is tried again unless a rule stops it.
struct from_options {
    exception_policy stops, retries, rest;

    explicit from_options(const job_options& o) {
        retry_settings waits = job_waits(o.retry);
        waits.max_attempts = unlimited; // .attempts counts, in the store
        for (const rule& each : o.rules) {
            const auto applies = [each](const failure& f) { return each.applies_to(f); };
            if (each.then == rule::verdict::stop) stops.add({.predicate = applies});
            else retries.add({.predicate = applies, .redeliver = waits});
        }
        exception_rule others{.redeliver = waits};
        if (names_exceptions(o.rules)) others.predicate = [](const failure& f) { return !f.is_exception(); };
        rest.add(std::move(others));
    }
    void add_to(std::vector<exception_layer>& layers, std::string_view where) {
        if (layers.empty()) stops.max_total_attempts(std::numeric_limits<int>::max()); // .attempts is all there is
        for (const exception_policy* each : {&stops, &retries, &rest}) layers.push_back({each, where});
    }
};

bool is_all(const exception_policy* p) {
    return p != nullptr && !p->empty() && !p->inherits();
}

} // namespace

result<void> check(const job_type& kind) {
    if (!is_all(kind.rules()) || !says_something(kind.options())) return {};
    return fail(errc::invalid_argument, "job \"" + std::string(kind.options().name) +
                                            "\" has .rules or .retry in its options, and rules at its registration "
                                            "that replace them: keep one of the two, or let the latter inherit()");
}

exception_table table_of(const job_type& kind, const exception_policy* of_host) {
    from_options own(says_something(kind.options()) ? kind.options() : job_options{});
    std::vector<exception_layer> layers;
    if (kind.rules() != nullptr) layers.push_back({kind.rules(), "job"});
    if (is_all(kind.rules())) return exception_table(layers);
    if (says_something(kind.options())) {
        own.add_to(layers, "job's options");
        return exception_table(layers);
    }
    if (of_host != nullptr) layers.push_back({of_host, "host"});
    if (!is_all(of_host)) own.add_to(layers, "defaults");
    return exception_table(layers);
}

std::vector<std::string> lint(const job_options& options, const exception_table& rules) {
    const std::string job = "job \"" + std::string(options.name) + "\": ";
    const int attempts = options.attempts.value_or(default_job_attempts);
    std::vector<std::string> findings;
    for (const auto& [rule, where] : rules.rules()) {
        const int redeliveries = rule.redeliver ? rule.redeliver->max_attempts : 0;
        if (redeliveries == unlimited || redeliveries < attempts) continue;
        findings.push_back(job + describe(rule) + " of the " + std::string(where) + " redelivers " +
                           std::to_string(redeliveries) + " times, for which its " + std::to_string(attempts) +
                           " attempts are too few; .attempts = " + std::to_string(redeliveries + 1) + " would do");
    }
    return findings;
}

} // namespace holdfast::job_rules
