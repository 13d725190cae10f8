#include "store_rack.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "prepare.hpp"
#include "promise_check.hpp"

namespace holdfast::detail {

namespace {

std::string quoted(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

// The plugin's code, so whatever it throws ends here.
result<store_capabilities> capabilities_of(const store& s) {
    try {
        return s.capabilities();
    } catch (const std::exception& e) {
        return fail(errc::plugin, e.what());
    } catch (...) {
        return fail(errc::plugin, "it threw something that is not a std::exception");
    }
}

} // namespace

std::string store_rack::entry::title() const {
    const std::string name = quoted(what->name());
    return section.empty() ? "the program's own store " + name : "the store " + name + " of " + section;
}

std::string store_rack::entry::place() const {
    return where.empty() ? std::string() : where + ": ";
}

store_rack::~store_rack() {
    while (!entries_.empty()) entries_.pop_back();
}

void store_rack::lend(store& mine) {
    main_ = entries_.size();
    entries_.push_back({{}, {}, std::nullopt, &mine, {}});
}

result<void> store_rack::add(const plugin_choice& from, std::optional<facet> only, plugin_instance<store> made) {
    store& what = *made;
    entries_.push_back({from.section, from.where, std::move(made), &what, {}});
    if (!only) {
        main_ = entries_.size() - 1;
        return {};
    }
    entry& added = entries_.back();
    if (!offers(what, *only))
        return fail(errc::configuration, added.place() + added.title() + " does not offer " +
                                             std::string(to_text(*only)) + "; it offers " + facets_of(what));
    added.facets.push_back(*only);
    return {};
}

void store_rack::share_out() {
    if (!main_) return;
    entry& main = entries_[*main_];
    for (const facet each : all_facets)
        if (keeper_of(each) == nullptr && offers(*main.what, each)) main.facets.push_back(each);
}

result<void> store_rack::prepare(runtime& on, logger& log, const std::function<void()>& stop_runtime) {
    for (const entry& each : entries_) {
        const auto ready = detail::prepare([&each] { return each.what->prepare(); }, on, log,
                                           each.place() + each.title(), stop_runtime);
        if (!ready) return ready;
    }
    return {};
}

const store_rack::entry* store_rack::keeper_of(facet f) const {
    const auto keeps = [&](const entry& each) { return std::ranges::find(each.facets, f) != each.facets.end(); };
    const auto found = std::ranges::find_if(entries_, keeps);
    return found == entries_.end() ? nullptr : &*found;
}

result<store*> store_rack::main() const {
    if (main_) return entries_[*main_].what;
    return fail(errc::configuration, configuration_ + ": there is no default store; write [store] with plugin = "
                                                      "\"sqlite\", or another");
}

result<store*> store_rack::of(facet f) const {
    if (const entry* found = keeper_of(f)) return found->what;
    const std::string name(to_text(f));
    if (!main_)
        return fail(errc::configuration, configuration_ + ": no store keeps " + name + "; write [store] or [store." +
                                             name + "] with plugin = \"sqlite\", or another");
    const entry& lacking = entries_[*main_];
    return fail(errc::configuration, (lacking.where.empty() ? configuration_ + ": " : lacking.place()) +
                                         lacking.title() + " does not offer " + name + "; write [store." + name +
                                         "] with a plugin that does");
}

result<void> store_rack::check(const std::vector<asked_promises>& asked) const {
    for (const asked_promises& each : asked)
        if (auto kept = check(each); !kept) return kept;
    return {};
}

result<void> store_rack::check(const asked_promises& asked) const {
    const auto refuse = [&](const std::string& why) { return fail(errc::configuration, asked.who + " " + why); };
    if (asked.of)
        if (auto there = of(*asked.of); !there) return refuse("needs a store: " + there.error().message);
    if (entries_.empty()) return refuse("needs a store; write [store] with plugin = \"sqlite\", or another");
    for (const entry& each : entries_) {
        for (const facet f : each.facets) {
            if (asked.of && *asked.of != f) continue;
            const auto has = capabilities_of(*each.what);
            if (!has)
                return fail(errc::plugin,
                            each.place() + each.title() + " says nothing of what it can do: " + has.error().message);
            if (const auto broken = first_broken(asked.what, *has, f))
                return refuse("asks for " + *broken + ", which " + each.title() + " cannot promise for " +
                              std::string(to_text(f)) + ": " + describe(*has));
        }
    }
    return check_together(asked);
}

// A unit of work belongs to one store; locks have no part in any. Of single facets it may be asked all the same.
result<void> store_rack::check_together(const asked_promises& asked) const {
    if (asked.of || !(asked.what.units_of_work || asked.what.joins_transactions)) return {};
    std::vector<std::pair<facet, const entry*>> kept;
    for (const facet f : all_facets)
        if (const entry* keeper = keeper_of(f); keeper != nullptr && f != facet::locks) kept.emplace_back(f, keeper);
    const auto elsewhere = std::ranges::find_if(kept, [&](const auto& each) { return each.second != kept[0].second; });
    if (elsewhere == kept.end()) return {};
    const std::string key = asked.what.units_of_work ? "units_of_work" : "joins_transactions";
    return fail(errc::configuration,
                asked.who + " asks for " + key + " = true of all facets, but " + std::string(to_text(kept[0].first)) +
                    " is kept by " + kept[0].second->title() + " and " + std::string(to_text(elsewhere->first)) +
                    " by " + elsewhere->second->title() +
                    ": what is in two stores cannot be written together; keep them in one, or ask for it of single "
                    "facets, as in [promises.jobs]");
}

std::vector<store_in_use> store_rack::in_use() const {
    std::vector<store_in_use> all;
    for (const entry& each : entries_)
        all.push_back({each.section.empty() ? "the program's own" : each.section, each.what, each.facets});
    return all;
}

} // namespace holdfast::detail
