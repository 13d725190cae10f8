#include <holdfast/policy_config.hpp>

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>

#include <holdfast/nearest.hpp>

#include "circuit_breaker.hpp"

namespace holdfast {
namespace {

using words = std::vector<std::string>;

std::unexpected<error> wrong(std::string_view key, std::string_view found, std::string_view expected) {
    return fail(errc::configuration,
                std::string(key) + ": expected " + std::string(expected) + ", found \"" + std::string(found) + "\"");
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
    return problem == std::errc{} && end == text.data() + text.size();
}

template <class T>
T bare(const std::optional<T>&);
template <class T>
T bare(const T&);

// Reads one text into a field, whatever the field's type.
template <class Field>
result<void> read(std::string_view key, std::string_view text, Field& field) {
    using type = decltype(bare(field));
    if constexpr (std::is_same_v<type, int>) {
        int number = 0;
        if (key == "max_attempts" && text == "unlimited") field = unlimited;
        else if (read_number(text, number) && number >= 0) field = number;
        else return wrong(key, text, "a whole number");
    } else if constexpr (std::is_same_v<type, double>) {
        double number = 0;
        if (!read_number(text, number) || !std::isfinite(number)) return wrong(key, text, "a number");
        field = number;
    } else if constexpr (std::is_same_v<type, bool>) {
        if (text != "true" && text != "false") return wrong(key, text, "true or false");
        field = text == "true";
    } else if constexpr (std::is_same_v<type, duration>) {
        const auto d = text == "forever" ? std::optional(forever) : parse_duration(text);
        if (!d) return wrong(key, text, "a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", \"1d\"");
        field = *d;
    } else if constexpr (std::is_same_v<type, backoff>) {
        for (const backoff each : {backoff::constant, backoff::linear, backoff::exponential})
            if (to_text(each) == text) {
                field = each;
                return {};
            }
        return wrong(key, text, "constant, linear or exponential");
    } else if constexpr (std::is_same_v<type, fallback_when>) {
        if (text == "failed") field = fallback_when::failed;
        else if (text == "rejected_only") field = fallback_when::rejected_only;
        else if (text == "never") field = fallback_when::never;
        else return wrong(key, text, "failed, rejected_only or never");
    }
    return {};
}

result<void> read_intervals(std::string_view key, const words& values, retry_options& retry) {
    interval_list intervals;
    for (const std::string& each : values) {
        duration d{};
        if (auto one = read(key, each, d); !one) return one;
        intervals.push_back(d);
    }
    retry.intervals = intervals;
    retry.max_attempts.reset(); // the list says how often and how long
    retry.delay.reset();
    retry.backoff.reset();
    return {};
}

struct field {
    std::string_view key;
    std::function<result<void>(std::string_view, const words&, policy_options&)> set;
};

template <class Access>
field single(std::string_view key, Access access) {
    return {key, [access](std::string_view k, const words& values, policy_options& o) -> result<void> {
                if (values.size() != 1)
                    return fail(errc::configuration, std::string(k) + ": expected one value, found a list of " +
                                                         std::to_string(values.size()));
                return read(k, values.front(), access(o));
            }};
}

#define HOLDFAST_FIELD(key, member) single(key, [](policy_options& o) -> auto& { return o.member; })

const std::vector<field>& fields() {
    static const std::vector<field> all = {
        HOLDFAST_FIELD("max_attempts", retry.max_attempts),
        HOLDFAST_FIELD("delay", retry.delay),
        HOLDFAST_FIELD("backoff", retry.backoff),
        HOLDFAST_FIELD("max_delay", retry.max_delay),
        HOLDFAST_FIELD("jitter", retry.jitter),
        {"intervals",
         [](std::string_view k, const words& v, policy_options& o) { return read_intervals(k, v, o.retry); }},
        HOLDFAST_FIELD("on_circuit_open", retry.on_circuit_open),
        HOLDFAST_FIELD("timeout", timeout),
        HOLDFAST_FIELD("total_timeout", total_timeout),
        HOLDFAST_FIELD("breaker.consecutive_failures", breaker.consecutive_failures),
        HOLDFAST_FIELD("breaker.failure_ratio", breaker.failure_ratio),
        HOLDFAST_FIELD("breaker.window", breaker.window),
        HOLDFAST_FIELD("breaker.min_throughput", breaker.min_throughput),
        HOLDFAST_FIELD("breaker.break_for", breaker.break_for),
        HOLDFAST_FIELD("breaker.max_break_for", breaker.max_break_for),
        HOLDFAST_FIELD("breaker.probes", breaker.probes),
        HOLDFAST_FIELD("breaker.probe_timeout", breaker.probe_timeout),
        HOLDFAST_FIELD("concurrency.limit", concurrency.limit),
        HOLDFAST_FIELD("concurrency.queue", concurrency.queue),
        HOLDFAST_FIELD("rate.permits", rate.permits),
        HOLDFAST_FIELD("rate.per", rate.per),
        HOLDFAST_FIELD("rate.burst", rate.burst),
        HOLDFAST_FIELD("budget.ratio", budget.ratio),
        HOLDFAST_FIELD("budget.reserve", budget.reserve),
        HOLDFAST_FIELD("hedge.max_hedges", hedge.max_hedges),
        HOLDFAST_FIELD("hedge.after", hedge.after),
        HOLDFAST_FIELD("fallback", fallback),
    };
    return all;
}

#undef HOLDFAST_FIELD

std::string number_text(double value) {
    char buffer[32];
    const auto [end, problem] = std::to_chars(buffer, buffer + sizeof(buffer), value);
    return {buffer, end};
}

} // namespace

result<void> set_policy_field(policy_options& options, std::string_view key, const std::vector<std::string>& values) {
    for (const field& each : fields())
        if (each.key == key) return each.set(key, values, options);
    return fail(errc::configuration,
                "a policy has no key \"" + std::string(key) + "\"" + did_you_mean(key, policy_keys()));
}

std::vector<std::string_view> policy_keys() {
    std::vector<std::string_view> keys;
    for (const field& each : fields()) keys.push_back(each.key);
    return keys;
}

result<void> check_policy(const policy_options& options) {
    try {
        validate(options);
        return {};
    } catch (const invalid_policy& e) {
        return fail(errc::invalid_policy, "policy \"" + std::string(options.name) + "\": " + e.what());
    }
}

std::vector<std::pair<std::string, std::string>> describe_policy(const policy_options& o) {
    std::vector<std::pair<std::string, std::string>> lines;
    const auto add = [&](std::string key, std::string text) { lines.emplace_back(std::move(key), std::move(text)); };
    if (o.rate.permits > 0) {
        add("rate", std::to_string(o.rate.permits) + " per " + to_text(o.rate.per) + ", burst " +
                        std::to_string(o.rate.burst == 0 ? o.rate.permits : o.rate.burst));
    }
    if (o.concurrency.limit > 0)
        add("concurrency", std::to_string(o.concurrency.limit) + ", queue " + std::to_string(o.concurrency.queue));
    if (o.total_timeout) add("total_timeout", to_text(*o.total_timeout));
    if (o.retry.enabled()) {
        const retry_settings r = resolve(o.retry);
        std::string text = r.max_attempts == unlimited ? "unlimited" : std::to_string(r.max_attempts) + " times";
        if (r.intervals.empty()) {
            text +=
                ", " + to_text(r.delay) + " " + std::string(to_text(r.backoff)) + ", at most " + to_text(r.max_delay);
        } else {
            text += " after";
            for (const duration each : r.intervals) text += " " + to_text(each);
        }
        if (r.jitter) text += ", jitter";
        if (r.on_circuit_open) text += ", also on an open circuit";
        add("retry", text);
    }
    if (!o.rules.empty()) add("rules", std::to_string(o.rules.size()));
    if (o.hedge.max_hedges > 0)
        add("hedge", std::to_string(o.hedge.max_hedges) + " after " + to_text(o.hedge.after) + " each");
    if (o.budget.ratio > 0 || o.budget.reserve > 0)
        add("budget",
            number_text(o.budget.ratio) + " per call, reserve " + number_text(o.budget.reserve) + " a second");
    if (o.breaker.enabled()) {
        const breaker_settings b = breaker_settings::from(o.breaker);
        std::string text = b.consecutive_failures > 0
                               ? std::to_string(b.consecutive_failures) + " failures in a row"
                               : number_text(b.failure_ratio * 100) + "% of at least " +
                                     std::to_string(b.min_throughput) + " calls in " + to_text(b.window);
        text += ", break " + to_text(b.break_for);
        if (b.max_break_for > b.break_for) text += " growing to " + to_text(b.max_break_for);
        text += ", " + std::to_string(b.probes) + (b.probes == 1 ? " probe" : " probes");
        add("breaker", text);
    }
    if (o.timeout) add("timeout", to_text(*o.timeout));
    if (o.fallback == fallback_when::rejected_only) add("fallback", "rejected_only");
    if (o.fallback == fallback_when::never) add("fallback", "never");
    return lines;
}

} // namespace holdfast
