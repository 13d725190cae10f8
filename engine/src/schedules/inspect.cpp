// What can be told about schedules, also by a node that has fired none of their slots.
#include "schedules/scheduler_state.hpp"

#include <algorithm>
#include <ranges>

namespace holdfast {

namespace detail {

namespace {

constexpr int slots_back = 20; // the latest of them may have been skipped
constexpr auto look_back = std::chrono::hours{24 * 366 * 2};
constexpr int cycles_looked_at = 200;

std::optional<identifier> last_run_of(const job_view& cycle) {
    const auto found = cycle.extra.find(tick_header::last_run);
    return found == cycle.extra.end() ? std::nullopt : parse_identifier(found->second);
}

} // namespace

task<result<std::optional<job_view>>> scheduler_state::look(identifier id) {
    auto looking = store().get(id);
    auto found = co_await std::move(looking);
    if (!found) co_return std::unexpected(std::move(found.error()));
    auto* view = std::get_if<job_view>(&*found);
    if (view == nullptr) co_return std::nullopt;
    co_return std::move(*view);
}

task<result<schedule_status>> scheduler_state::inspect_slots(const definition& d, store_time now,
                                                             schedule_status status) {
    status.next_due = d.plan.next(now);
    if (status.next_due) {
        auto looking = look(d.tick_id(*status.next_due));
        const auto tick = co_await std::move(looking);
        if (!tick) co_return std::unexpected(tick.error());
        status.chained = tick->has_value();
    }
    const auto slots = d.plan.latest(now - look_back, now, slots_back);
    for (const store_time slot : slots | std::views::reverse) {
        const identifier id = d.run_id(slot);
        if (status.last_run && *status.last_run >= id) break; // ids sort by slot
        auto looking = look(id);
        const auto run = co_await std::move(looking);
        if (!run) co_return std::unexpected(run.error());
        if (!*run) continue;
        status.last_run = id;
        break;
    }
    co_return status;
}

// The one that is known here, or else the one that other nodes have put in its place.
task<result<std::optional<job_view>>> scheduler_state::find_cycle(definition& d) {
    std::optional<identifier> known;
    note(d, [&](const definition& of) { known = of.cycle; });
    if (known) {
        auto looking = look(*known);
        auto view = co_await std::move(looking);
        if (!view || *view) co_return view;
    }
    for (const job_state state : {job_state::scheduled, job_state::pending, job_state::processing}) {
        auto listing =
            store().list({.state = state, .queue = d.queue, .type = std::string(wait_kind)}, cycles_looked_at);
        auto page = co_await std::move(listing);
        if (!page) co_return std::unexpected(std::move(page.error()));
        for (job_view& each : page->jobs) {
            const auto name = each.extra.find(schedule_header::name);
            if (name != each.extra.end() && name->second == d.when().name) co_return std::move(each);
        }
    }
    co_return std::nullopt;
}

task<result<schedule_status>> scheduler_state::inspect_cycle(definition& d, store_time now, schedule_status status) {
    auto finding = find_cycle(d);
    const auto cycle = co_await std::move(finding);
    if (!cycle) co_return std::unexpected(cycle.error());
    status.chained = cycle->has_value();
    if (!*cycle) co_return status;
    const job_view& view = **cycle;
    if (const auto before = last_run_of(view)) status.last_run = before;
    const auto header = view.extra.find(schedule_header::slot);
    const auto slot = header == view.extra.end() ? std::nullopt : parse_timestamp<store_time>(header->second);
    if (!slot) co_return status;
    if (*slot > now) status.next_due = slot;
    else status.last_run = d.cycle_run_id(view.id, *slot);
    co_return status;
}

task<result<schedule_status>> scheduler_state::inspect(definition& d, store_time now) {
    schedule_status seen;
    note(d, [&](const definition& of) { seen = of.seen; });
    auto inspecting = d.is_cycle() ? inspect_cycle(d, now, std::move(seen)) : inspect_slots(d, now, std::move(seen));
    auto status = co_await std::move(inspecting);
    if (!status || !status->last_run) co_return status;
    auto looking = look(*status->last_run);
    const auto run = co_await std::move(looking);
    if (!run) co_return std::unexpected(run.error());
    if (!*run) co_return status;
    status->last_state = (*run)->state;
    if (d.is_cycle() && !status->next_due && (*run)->ended) // nobody has looked yet
        status->next_due = *(*run)->ended + std::chrono::duration_cast<std::chrono::microseconds>(*d.when().after_each);
    co_return status;
}

} // namespace detail

task<result<std::vector<schedule_status>>> job_scheduler::inspect() {
    const auto s = state_;
    auto asking = s->with.store.now();
    const auto now = co_await std::move(asking);
    if (!now) co_return std::unexpected(now.error());
    std::vector<schedule_status> all;
    for (auto& [name, d] : s->definitions) {
        auto looking = s->inspect(d, *now);
        auto status = co_await std::move(looking);
        if (!status) co_return std::unexpected(std::move(status.error()));
        all.push_back(std::move(*status));
    }
    co_return all;
}

} // namespace holdfast
