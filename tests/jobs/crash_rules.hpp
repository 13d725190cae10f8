// What must hold whatever goes wrong: no acknowledged job is lost, attempts and
// crashes stay within their limits, one owner's writes are accepted, each end
// has one accepted token, history only grows, everything ends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/job_machine.hpp>
#include <holdfast/job_store.hpp>

#include "audited_jobs.hpp"

namespace holdfast::test {

// What was promised about jobs, and what they did, as the world outside the
// store saw it.
struct crash_world {
    std::set<identifier> acknowledged;
    std::map<identifier, std::set<std::uint64_t>> effects; // by the tokens of the runs that had them
    std::set<identifier> probed;                           // a probe said that it had happened
    std::string wrong;                                     // the first thing that a handler saw and must not see

    int effects_of(const identifier& id) const {
        const auto found = effects.find(id);
        return found == effects.end() ? 0 : static_cast<int>(found->second.size());
    }
};

class crash_rules {
public:
    static constexpr int max_crashes = 2; // of every job
    using views = std::map<identifier, job_view>;

    crash_rules(const audited_jobs& store, const crash_world& seen) : store_(store), seen_(seen) {}

    // At any time. The first rule that is broken, or nothing.
    std::string check(const views& all) {
        if (!store_.wrong().empty()) return store_.wrong();
        if (!seen_.wrong.empty()) return seen_.wrong;
        for (const identifier& each : seen_.acknowledged)
            if (!all.contains(each)) return "an acknowledged job is gone: " + to_text(each);
        std::set<std::pair<std::string, std::string>> keys;
        for (const auto& [id, view] : all) {
            if (view.unique_key && !is_final(view.state) && !keys.emplace(view.what.type, *view.unique_key).second)
                return "two unfinished jobs have the key of " + text_of(view);
            if (auto wrong = check_history(view); !wrong.empty()) return wrong + ": " + text_of(view);
            histories_[id] = view.history;
        }
        return {};
    }

    // When all has ended.
    std::string check_ends(const views& all) const {
        for (const auto& [id, view] : all) {
            auto wrong = check_end(view);
            if (wrong.empty()) wrong = check_effects(view);
            if (wrong.empty() && view.parent && !store_.was_requeued(id)) wrong = check_child(view, all);
            if (!wrong.empty()) return wrong + ": " + text_of(view);
        }
        return {};
    }

    std::string text_of(const job_view& v) const {
        std::string text = to_text(v.id) + " " + v.what.type + (v.may_restart ? "" : " (never)") + " " +
                           std::string(to_text(v.state)) + " attempts " + std::to_string(v.attempts) + " crashes " +
                           std::to_string(v.crash_count) + (v.parent ? " child of " + to_text(*v.parent) : "") +
                           (v.unique_key ? " key " + *v.unique_key : "") + (v.cancel_requested ? " to cancel" : "") +
                           " effects " + std::to_string(seen_.effects_of(v.id)) + ":";
        for (const auto& each : v.history)
            text += " [" + std::to_string(each.generation) + "." + std::to_string(each.token) + " " + each.worker +
                    " " + each.outcome + " " + each.error.message + (had_effect(v.id, each.token) ? " *]" : "]");
        return text;
    }

private:
    bool had_effect(const identifier& id, std::uint64_t token) const {
        const auto found = seen_.effects.find(id);
        return found != seen_.effects.end() && found->second.contains(token);
    }

    std::string check_history(const job_view& view) const {
        const auto& now = view.history;
        if (const auto known = histories_.find(view.id); known != histories_.end()) {
            const auto& before = known->second;
            if (now.size() < before.size()) return "history shrank";
            for (std::size_t i = 0; i < before.size(); ++i)
                if (before[i].token != now[i].token ||
                    (before[i].outcome != "running" && before[i].outcome != now[i].outcome))
                    return "history changed";
        }
        if (view.attempts < 0 || view.attempts > view.max_attempts) return "wrong number of attempts";
        std::map<int, int> attempts; // by generation
        std::map<int, int> crashes;
        for (std::size_t i = 0; i < now.size(); ++i) {
            const attempt_entry& entry = now[i];
            if (i > 0 && entry.token <= now[i - 1].token) return "a token came twice";
            const bool running = entry.outcome == "running";
            if (running && (i + 1 != now.size() || view.state != job_state::processing)) return "a run has no end";
            const bool crashed = entry.outcome == "crashed";
            const auto word = store_.settled_as(view.id, entry.token);
            if (word.has_value() != (!running && !crashed)) return "an end without an accepted token, or the reverse";
            if (word && job_machine::outcome_text(*word) != entry.outcome) return "an end is not what was accepted";
            if (crashed && ++crashes[entry.generation] > max_crashes + 1 && view.may_restart)
                return "it was restarted too often";
            const bool unburnt = crashed || entry.outcome == "released" || entry.outcome == "snoozed";
            if (!unburnt && ++attempts[entry.generation] > view.max_attempts) return "too many attempts";
        }
        return {};
    }

    static std::string check_end(const job_view& view) {
        if (!is_final(view.state)) return "it has not ended";
        if (view.history.empty() || view.history.back().generation != view.generation)
            return view.state == job_state::cancelled ? "" : "an end without a run";
        const attempt_entry& last = view.history.back();
        const auto one_of = [&](std::initializer_list<std::string_view> these) {
            return std::ranges::find(these, last.outcome) != these.end();
        };
        switch (view.state) {
        case job_state::succeeded: return one_of({"succeeded"}) ? "" : "succeeded without a run that did";
        case job_state::failed: return one_of({"crashed", "failed"}) ? "" : "failed without a reason";
        case job_state::dead_letter:
            if (last.outcome == "crashed")
                return last.error.message == job_machine::crashed_too_often ? "" : "dead without the reason";
            return one_of({"retry", "dead_letter"}) ? "" : "dead without a reason";
        case job_state::cancelled:
            return one_of({"succeeded", "dead_letter", "failed"}) ? "cancelled after its end" : "";
        default: return "a strange end";
        }
    }

    std::string check_effects(const job_view& view) const {
        const int effects = seen_.effects_of(view.id);
        int runs = 0;
        for (std::size_t i = 0; i < view.history.size(); ++i) {
            const attempt_entry& entry = view.history[i];
            const bool last = i + 1 == view.history.size() || view.history[i + 1].generation != entry.generation;
            if (!had_effect(view.id, entry.token)) continue;
            ++runs;
            if (!view.may_restart && entry.outcome == "crashed" && !last) return "ran again after a crash";
        }
        if (runs != effects) return "an effect of a run that nobody knows";
        if (view.state != job_state::succeeded) return {};
        if (effects == 0) return "succeeded without having run";
        if (view.what.type == "hopeless") return "a hopeless job succeeded";
        const std::string accepted = to_text(view.id) + "-" + std::to_string(view.history.back().token);
        if (view.output != accepted && !seen_.probed.contains(view.id))
            return "the output is not of the run that was accepted";
        return {};
    }

    std::string check_child(const job_view& child, const views& all) const {
        const auto parent = all.find(*child.parent);
        if (parent == all.end() || parent->second.state == job_state::succeeded) return {};
        if (child.state != job_state::cancelled || seen_.effects_of(child.id) > 0) return "ran without its parent";
        return {};
    }

    const audited_jobs& store_;
    const crash_world& seen_;
    std::map<identifier, std::vector<attempt_entry>> histories_;
};

} // namespace holdfast::test
