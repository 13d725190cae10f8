#include <algorithm>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/exception_decision.hpp>
#include <holdfast/exception_explain.hpp>

namespace holdfast {

namespace {

constexpr int most_waits_shown = 5;

std::string counted(long n, std::string_view one, std::string_view many) {
    return std::to_string(n) + " " + std::string(n == 1 ? one : many);
}

std::string times(int n) {
    if (n == unlimited) return "without limit";
    return n == 1 ? "once" : std::to_string(n) + " times";
}

// "after 200ms, 400ms, 800ms with jitter"; of many, the first ones and the last.
std::string schedule(const retry_settings& how) {
    retry_settings plain = how;
    plain.jitter = false;
    random_series unused(0);
    const int count = how.max_attempts == unlimited ? most_waits_shown + 1 : how.max_attempts;
    const auto wait = [&](int n) { return to_short_text(plain.delay_before(n, unused)); };
    std::string text = "after " + wait(1);
    for (int n = 2; n <= std::min(count, most_waits_shown); ++n) text += ", " + wait(n);
    if (how.max_attempts == unlimited) text += ", …";
    else if (count == most_waits_shown + 1) text += ", " + wait(count);
    else if (count > most_waits_shown) text += ", … " + wait(count);
    if (how.delay_for != nullptr) text += " unless its function says otherwise";
    return text + (how.jitter ? " with jitter" : "");
}

std::string chain(const exception_rule& rule, int max_total_attempts) {
    const bool drops = rule.then == exception_rule::ending::discard;
    if (rule.is_terminal()) return drops ? "  discard\n" : "  dead letter\n";
    std::string text;
    if (rule.retry) text += "  retry " + times(rule.retry->max_attempts) + ", " + schedule(*rule.retry) + "\n";
    if (rule.redeliver) {
        text += "  redeliver " + times(rule.redeliver->max_attempts) + ", " + schedule(*rule.redeliver);
        if (rule.retry && rule.retry->max_attempts != unlimited)
            text += "; each with " + counted(rule.retry->max_attempts, "retry", "retries") + " of its own";
        text += "\n";
    }
    const auto worst = worst_case(rule, max_total_attempts);
    return text + (drops ? "  then discard\n" : "  then dead letter\n") + "  at most " +
           counted(worst.calls, "call", "calls") + (worst.cut ? ", for that is the total of attempts" : "") + ", and " +
           to_short_text(worst.waits) + " of waiting\n";
}

std::string taken_by(const exception_table& table, std::size_t rule) {
    const auto& [how, where] = table.rules()[rule];
    return describe(how) + " of the " + std::string(where) + ":\n" + chain(how, table.max_total_attempts());
}

} // namespace

std::string describe(const exception_rule& rule) {
    std::string text;
    for (const matched_code& each : rule.codes) text += (text.empty() ? "" : ", ") + each.text();
    if (!rule.codes.empty()) return "on(" + text + (rule.predicate ? ", predicate)" : ")");
    if (rule.type == nullptr) return rule.predicate ? "on(predicate)" : "default_()";
    return "on<" + detail::type_name(*rule.type->type) + ">(" + (rule.predicate ? "predicate)" : ")");
}

std::string explain(const exception_table& table, const failure& f) {
    const std::string kind = f.kind();
    const std::string what = (kind.empty() ? "" : kind + ": ") + f.message() + "\n";
    random_series unused(0);
    using reason = exception_decision::reason;
    const auto first = decide(table, f, {}, unused);
    switch (first.why) {
    case reason::no_rule: return what + "is taken by no rule:\n  dead letter\n";
    case reason::not_retryable: return what + "is never retried, and no rule names it:\n  dead letter\n";
    case reason::rule_failed: return what + "makes its rule fail: " + first.problem + "\n  dead letter\n";
    default: return what + "is taken by " + taken_by(table, *first.rule);
    }
}

std::string explain(const exception_table& table) {
    std::string text;
    for (std::size_t i = 0; i < table.rules().size(); ++i) text += taken_by(table, i);
    const auto takes_all = [](const exception_table::entry& each) { return each.rule.takes_all(); };
    return std::ranges::any_of(table.rules(), takes_all) ? text : text + "what no rule takes:\n  dead letter\n";
}

} // namespace holdfast
