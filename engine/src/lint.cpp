#include <holdfast/lint.hpp>

#include <algorithm>

#include "total_delay.hpp"

namespace holdfast {
namespace {

using std::chrono::minutes;

std::string quoted(std::string_view name) {
    return "policy \"" + std::string(name) + "\"";
}

} // namespace

std::optional<long> worst_case_calls(const policy_options& o) {
    if (o.hedge.max_hedges > 0) return o.hedge.max_hedges + 1;
    if (!o.retry.enabled()) return 1;
    const int retries = resolve(o.retry).max_attempts;
    if (retries == unlimited) return std::nullopt;
    return static_cast<long>(retries) + 1;
}

std::optional<duration> worst_case_duration(const policy_options& o) {
    const duration total = o.total_timeout.value_or(forever);
    const duration timeout = o.timeout.value_or(forever);
    const auto calls = worst_case_calls(o);
    duration longest = forever;
    if (timeout != forever && calls) {
        longest = o.hedge.max_hedges > 0
                      ? saturating_sum(timeout, saturating_product(o.hedge.after, o.hedge.max_hedges))
                      : saturating_sum(saturating_product(timeout, *calls), total_delay(resolve(o.retry)));
    }
    longest = std::min(longest, total);
    if (longest == forever) return std::nullopt;
    return longest;
}

std::vector<std::string> lint(const policy_options& o) {
    std::vector<std::string> findings;
    const auto calls = worst_case_calls(o);
    const auto longest = worst_case_duration(o);
    const bool repeats = !calls || *calls > 1;
    if (!calls && !o.total_timeout)
        findings.push_back(quoted(o.name) + " retries without limit; give it a total_timeout");
    else if (repeats && !longest)
        findings.push_back(quoted(o.name) +
                           " retries, but nothing limits one attempt; give it a timeout or a total_timeout");
    else if (longest && *longest > minutes{10})
        findings.push_back(quoted(o.name) + " can take " + to_short_text(*longest) +
                           " in the worst case; a total_timeout would bound it");
    if (calls && *calls > 20)
        findings.push_back(quoted(o.name) + " makes up to " + std::to_string(*calls) +
                           " calls; fewer with a longer delay are kinder to what is failing");
    if (o.retry.enabled() && !resolve(o.retry).jitter && o.retry.intervals.empty() && calls.value_or(2) > 2)
        findings.push_back(quoted(o.name) + " retries without jitter: callers that fail together come back together");
    if (o.budget.ratio > 0 && !repeats)
        findings.push_back(quoted(o.name) + " has a retry budget and nothing that would spend it");
    return findings;
}

std::vector<std::string> lint(std::span<const policy> chain) {
    std::vector<std::string> findings;
    std::string names;
    std::optional<long> calls = 1;
    std::optional<duration> longest = duration::zero();
    for (std::size_t i = chain.size(); i-- > 0;) { // from the inside: each layer repeats all that is inside it
        const policy_options& o = chain[i].options();
        for (auto& each : lint(o)) findings.push_back(std::move(each));
        names.insert(0, names.empty() ? std::string(o.name) : std::string(o.name) + " > ");
        const auto own = worst_case_calls(o);
        calls =
            calls && own && *own <= 1'000'000'000 / std::max(1L, *calls) ? std::optional(*calls * *own) : std::nullopt;
        if (const auto limit = worst_case_duration(o)) {
            longest = limit; // its timeouts bound what is inside
        } else {
            longest = longest && own ? std::optional(saturating_product(*longest, *own)) : std::nullopt;
        }
    }
    if (chain.size() > 1 && (!calls || *calls > 10))
        findings.push_back(names + " multiply to " +
                           (calls ? "up to " + std::to_string(*calls) : std::string("unlimited")) +
                           " calls; retry at one layer only");
    if (chain.size() > 1 && longest && *longest > minutes{10} && *longest != forever)
        findings.push_back(names + " together can take " + to_short_text(*longest));
    return findings;
}

} // namespace holdfast
