#include "policy_book.hpp"

#include <algorithm>
#include <map>

#include <holdfast/engine.hpp>
#include <holdfast/lint.hpp>
#include <holdfast/nearest.hpp>
#include <holdfast/policy_config.hpp>

#include "policy_overrides.hpp"

namespace holdfast::detail {

namespace {

// "timeout 30s -> 10s; rate off -> 5 per 1s, burst 5"
std::string difference(const policy_options& before, const policy_options& after) {
    std::string text;
    const auto add = [&](const std::string& key, const std::string& was, const std::string& is) {
        text += (text.empty() ? "" : "; ") + key + " " + was + " -> " + is;
    };
    const auto old_fields = describe_policy(before);
    const auto new_fields = describe_policy(after);
    const std::map<std::string, std::string> old_by_key(old_fields.begin(), old_fields.end());
    const std::map<std::string, std::string> new_by_key(new_fields.begin(), new_fields.end());
    for (const auto& [key, was] : old_fields) {
        const auto is = new_by_key.find(key);
        if (is == new_by_key.end()) add(key, was, "off");
        else if (is->second != was) add(key, was, is->second);
    }
    for (const auto& [key, is] : new_fields)
        if (!old_by_key.contains(key)) add(key, "off", is);
    return text;
}

const policy_override* find_override(const configuration& in, std::string_view policy) {
    const auto found = std::ranges::find(in.policies, policy, &policy_override::policy);
    return found == in.policies.end() ? nullptr : &*found;
}

} // namespace

policy_book::policy_book() : catalog_(make_policy_catalog()) {}

result<void> policy_book::add(const policy_options& declared) {
    const std::lock_guard lock(mutex_);
    if (auto added = catalog_->add(declared); !added) return added;
    entries_.push_back({declared, declared, std::nullopt});
    return {};
}

result<void> policy_book::check_names(const configuration& with, bool allow_unknown, logger& log) const {
    std::vector<std::string_view> known;
    for (const entry& each : entries_) known.push_back(each.declared.name);
    for (const policy_override& each : with.policies) {
        if (std::ranges::find(known, each.policy) != known.end()) continue;
        const std::string what =
            each.where + ": there is no policy \"" + each.policy + "\"" + did_you_mean(each.policy, known);
        if (!allow_unknown) return fail(errc::unknown_policy, what);
        log.debug(what);
    }
    return {};
}

result<void> policy_book::apply(const configuration& with, bool allow_unknown, logger& log) {
    const std::lock_guard lock(mutex_);
    if (auto known = check_names(with, allow_unknown, log); !known) return known;
    std::vector<policy_options> changed;
    std::vector<entry*> changed_entries;
    for (entry& each : entries_) {
        policy_options effective = each.declared;
        if (const policy_override* found = find_override(with, each.declared.name)) {
            auto applied = apply_override(each.declared, *found);
            if (!applied) return std::unexpected(std::move(applied.error()));
            effective = *applied;
        }
        if (effective == each.effective) continue;
        changed.push_back(effective);
        changed_entries.push_back(&each);
    }
    if (auto replaced = catalog_->replace(changed); !replaced) return replaced;
    for (std::size_t i = 0; i < changed.size(); ++i) {
        const policy_options before = std::exchange(changed_entries[i]->effective, changed[i]);
        log.info(with.name + ": policy \"" + std::string(before.name) + "\": " + difference(before, changed[i]));
    }
    return {};
}

void policy_book::warn(logger& log) {
    const std::lock_guard lock(mutex_);
    for (entry& each : entries_) {
        if (each.linted == each.effective) continue;
        each.linted = each.effective;
        for (const std::string& finding : lint(each.effective)) log.warning(finding);
    }
}

std::vector<policy_in_force> policy_book::in_force() const {
    const std::lock_guard lock(mutex_);
    std::vector<policy_in_force> all;
    for (const entry& each : entries_)
        all.push_back({std::string(each.declared.name), each.declared, each.effective, lint(each.effective)});
    return all;
}

std::size_t policy_book::size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
}

} // namespace holdfast::detail
