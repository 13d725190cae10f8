// The exception policies of all scopes as one flat table, in which a failure finds its rule without a throw.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <holdfast/exception_policy.hpp>

namespace holdfast {

// Null or without rules: that scope says nothing, but for its total of attempts.
struct exception_scopes {
    const exception_policy* consumer = nullptr;
    const exception_policy* transport = nullptr;
    const exception_policy* bus = nullptr;
    const exception_policy* host = nullptr;
};

// One policy in a table, and where it was declared: "consumer", "host". The text lives as long as the program.
struct exception_layer {
    const exception_policy* policy;
    std::string_view where;
};

// Immutable; any thread. Keeps copies of the rules.
class exception_table {
public:
    struct entry {
        exception_rule rule;
        std::string_view where;
    };

    // Takes nothing: every failure is a dead letter.
    exception_table() = default;
    // Any rule of an earlier layer goes before all of a later one. The total of attempts is that of the first which
    // gives one. See resolve() for scopes.
    explicit exception_table(std::span<const exception_layer> layers);

    // In the order of their layers, then of their declaration.
    const std::vector<entry>& rules() const noexcept { return rules_; }
    int max_total_attempts() const noexcept { return max_total_attempts_; }

    // The rule that takes it. Cancellation and non_retryable_error are taken only by a rule that names one of them, or
    // a type that derives from one. Throws what a predicate throws.
    std::optional<std::size_t> find(const failure& f) const;

private:
    // A way to match: a rule on codes has one for every exception that may carry them.
    struct row {
        std::size_t layer;
        bool conditional; // it takes only some of its type
        std::size_t rule;
        const detail::catchable* type; // null: whatever it is
        bool names_terminal;
    };
    void add_rows(std::size_t layer, std::size_t rule);
    void compare_types();
    bool holds(const row& r, const failure& original, const failure& carried) const;
    bool more_derived(std::size_t a, std::size_t b) const { return derived_[a * rows_.size() + b]; }

    std::vector<entry> rules_;
    std::vector<row> rows_;     // by layer; conditional ones first; as declared
    std::vector<bool> derived_; // [a][b]: same layer, and a's type derives from b's
    int max_total_attempts_ = default_max_total_attempts;
};

// The innermost scope that has rules, and those outside as long as it is said to inherit.
exception_table resolve(const exception_scopes& scopes);

namespace detail {

// A failure that was returned is judged like the exception that would carry it.
inline std::exception_ptr as_exception(const failure& f) {
    if (f.is_exception()) return nullptr; // it is one
    const std::error_code code = f.code();
    if (!code) return nullptr;
    const auto own = to_errc(code);
    if (!own) return std::make_exception_ptr(std::system_error(code));
    if (*own == errc::cancelled) return std::make_exception_ptr(operation_cancelled(f.message()));
    const auto* returned = f.value<result<void>>();
    return std::make_exception_ptr(
        failed(returned != nullptr ? returned->error() : error{*own, f.message(), f.retry_after()}));
}

inline bool names_terminal(const catchable* type, const exception_rule& rule) {
    if (std::ranges::any_of(rule.codes, [](const matched_code& each) { return each.is(errc::cancelled); })) return true;
    return type != nullptr && (is_or_derives_from(*type, catchable_as<operation_cancelled>) ||
                               is_or_derives_from(*type, catchable_as<non_retryable_error>));
}

} // namespace detail

inline exception_table::exception_table(std::span<const exception_layer> layers) {
    std::optional<int> most;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (!most) most = layers[i].policy->max_total_attempts();
        for (const exception_rule& each : layers[i].policy->rules()) {
            rules_.push_back({each, layers[i].where});
            add_rows(i, rules_.size() - 1);
        }
    }
    max_total_attempts_ = most.value_or(default_max_total_attempts);
    std::ranges::sort(rows_, {}, [](const row& r) { return std::tuple(r.layer, !r.conditional, r.rule); });
    compare_types();
}

inline void exception_table::add_rows(std::size_t layer, std::size_t at) {
    const exception_rule& rule = rules_[at].rule;
    const bool conditional = rule.predicate || !rule.codes.empty();
    const auto add = [&](const detail::catchable* type) {
        rows_.push_back({layer, conditional, at, type, detail::names_terminal(type, rule)});
    };
    if (rule.codes.empty()) return add(rule.type);
    add(&detail::catchable_as<std::system_error>);
    if (std::ranges::any_of(rule.codes, &matched_code::is_holdfast)) add(&detail::catchable_as<failed>);
}

inline void exception_table::compare_types() {
    for (const row& a : rows_)
        for (const row& b : rows_)
            derived_.push_back(a.layer == b.layer && a.type != nullptr &&
                               (b.type == nullptr || detail::derives_from(*a.type, *b.type)));
}

inline bool exception_table::holds(const row& r, const failure& original, const failure& carried) const {
    const exception_rule& rule = rules_[r.rule].rule;
    if (!rule.codes.empty()) {
        const std::error_code found = carried.code();
        if (std::ranges::none_of(rule.codes, [&](const matched_code& each) { return each.matches(found); }))
            return false;
    }
    return !rule.predicate || rule.predicate(r.type != nullptr ? carried : original);
}

inline std::optional<std::size_t> exception_table::find(const failure& f) const {
    const std::exception_ptr carrier = detail::as_exception(f);
    const failure carried = carrier ? failure::thrown(carrier) : f;
    const bool terminal = carried.is_terminal();

    std::vector<std::size_t> fitting;
    fitting.reserve(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const row& r = rows_[i];
        if (terminal && !r.names_terminal) continue;
        if (r.type == nullptr || r.type->catches(carried)) fitting.push_back(i);
    }
    while (!fitting.empty()) {
        const auto best = std::ranges::find_if(fitting, [&](std::size_t each) {
            return std::ranges::none_of(fitting, [&](std::size_t other) { return more_derived(other, each); });
        });
        const row& r = rows_[*best];
        if (!r.conditional || holds(r, f, carried)) return r.rule;
        fitting.erase(best);
    }
    return std::nullopt;
}

inline exception_table resolve(const exception_scopes& scopes) {
    std::vector<exception_layer> layers;
    for (const exception_layer& each : {exception_layer{scopes.consumer, "consumer"},
                                        {scopes.transport, "transport"},
                                        {scopes.bus, "bus"},
                                        {scopes.host, "host"}}) {
        if (each.policy == nullptr) continue;
        layers.push_back(each);
        if (!each.policy->inherits() && !each.policy->empty()) break;
    }
    return exception_table(layers);
}

} // namespace holdfast
