// Receives messages: ahead of free slots, in batches, duplicates left out, and without asking again and again when there
// is nothing.
#include <algorithm>
#include <map>

#include "event_worker_state.hpp"

namespace holdfast::detail {

namespace {

// The transport may say that something is due which receiving does not get: another worker is at it.
constexpr duration shortest_look = std::chrono::milliseconds{10};
constexpr int suspect_after = 2; // crashes
constexpr duration suspects_wait = std::chrono::seconds{2};

} // namespace

task<bool> event_worker_state::subscribe(self s, event_lane& in) {
    for (int n = 1;; ++n) {
        auto subscribing = s->with.from.subscribe({in.of.name, in.of.topics(), in.of.from_start()});
        const auto done = co_await std::move(subscribing);
        if (done) {
            s->transport_outage.answered(s->who(), "subscribe");
            co_return true;
        }
        s->transport_outage.failed(s->who(), "subscribe", done.error());
        auto backing_off = s->back_off(n);
        co_await std::move(backing_off);
        if (s->is_stopping()) co_return false;
    }
}

task<void> event_worker_state::feed(self s, event_lane& in) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    auto subscribing = subscribe(s, in);
    if (!co_await std::move(subscribing)) co_return;
    in.watching = s->with.from.watch(in.of.name, [&in] {
        if (!in.hinted.exchange(true)) in.feeder.set();
    });
    bool dry = false;
    bool asked = false; // when to look again, since it has become dry
    time_point look_at = never;
    int failures = 0;
    for (;;) {
        if (s->is_stopping()) co_return;
        if (in.hinted.exchange(false) || on.now() >= look_at) dry = false;
        const int limit = s->room(in);
        if (dry || limit == 0) {
            if (dry && !std::exchange(asked, true)) {
                auto looking = s->next_look(in);
                look_at = co_await std::move(looking);
                continue;
            }
            auto waiting = in.feeder.wait(on, dry ? look_at : never); // an ending wakes us as well
            if (!co_await std::move(waiting)) co_return;
            continue;
        }
        asked = false;
        look_at = never;
        auto receiving = s->receive(in, limit);
        const auto count = co_await std::move(receiving);
        if (count) {
            failures = 0;
            dry = *count < limit;
            co_await resume_on(on); // others have their turn between batches
            continue;
        }
        auto backing_off = s->back_off(++failures);
        co_await std::move(backing_off);
    }
}

int event_worker_state::room(const event_lane& in) const {
    const std::lock_guard lock(mutex);
    const int unwritten = static_cast<int>(endings.size()) + writing;
    if (unwritten > in.slots + 2 * how.batch) return 0; // the transport takes nothing now
    const int ahead = ahead_of_slots(in.average_run, in.slots, how.batch);
    const int held = in.running + in.waiting;
    if (held >= in.slots && in.waiting > ahead / 2) return 0;
    return std::clamp(in.slots + ahead - held, 0, how.batch);
}

// The number received; nothing: the transport did not answer.
task<std::optional<int>> event_worker_state::receive(event_lane& in, int limit) {
    auto receiving = with.from.receive(in.of.name, limit, how.lease, name);
    auto received = co_await std::move(receiving);
    if (!received) {
        transport_outage.failed(who(), "receive events", received.error());
        if (received.error().code != errc::not_found) co_return std::nullopt;
        auto subscribing = subscribe(shared_from_this(), in); // somebody has forgotten it
        co_await std::move(subscribing);
        co_return 0;
    }
    transport_outage.answered(who(), "receive events");
    const auto count = static_cast<int>(received->size());
    if (count == 0) co_return 0;
    auto held = hold(in, std::move(*received));
    auto asking = mark_duplicates(in, held);
    const bool known = co_await std::move(asking);
    if (known) {
        line_up(in, std::move(held));
    } else {
        for (const run& each : held) end(each, release());
    }
    co_return count;
}

std::vector<event_worker_state::run> event_worker_state::hold(event_lane& in, std::vector<delivery> received) {
    std::vector<run> held;
    held.reserve(received.size());
    for (delivery& each : received) {
        const auto kind = in.kinds.find(each.message.topic);
        held.push_back(
            std::make_shared<event_run>(std::move(each), in, kind == in.kinds.end() ? nullptr : &kind->second, *this));
    }
    std::vector<std::stop_source> taken_over; // from ourselves: we were too slow to renew
    {
        const std::lock_guard lock(mutex);
        for (const run& each : held) {
            if (each->what.crashes > 0)
                for (const run& before : all) {
                    if (&before->in != &in || before->what.position != each->what.position) continue;
                    before->lost = true;
                    if (before->running) taken_over.push_back(before->stop);
                }
            each->place = all.size();
            each->held = true;
            all.push_back(each);
        }
    }
    for (std::stop_source& each : taken_over) each.request_stop();
    return held;
}

task<bool> event_worker_state::mark_duplicates(event_lane& in, const std::vector<run>& among) {
    if (inbox == nullptr) co_return true;
    std::map<std::string, std::vector<run>> groups; // by what the inbox knows them under
    for (const run& each : among)
        if (each->kind != nullptr && each->kind->options.inbox) groups[each->inbox_name()].push_back(each);
    for (const auto& [known_as, runs] : groups) {
        for (int n = 1;; ++n) {
            std::vector<identifier> ids;
            for (const run& each : runs) ids.push_back(each->what.message.id);
            auto asking = inbox->received(known_as, std::move(ids));
            const auto answers = co_await std::move(asking);
            if (answers) {
                inbox_outage.answered(who(), "ask the inbox");
                for (std::size_t i = 0; i < runs.size() && i < answers->size(); ++i) runs[i]->duplicate = (*answers)[i];
                break;
            }
            inbox_outage.failed(who(), "ask the inbox", answers.error());
            if (is_stopping()) co_return false;
            auto backing_off = back_off(n);
            co_await std::move(backing_off);
        }
    }
    co_return true;
}

// By keys; duplicates are done with.
void event_worker_state::line_up(event_lane& in, std::vector<run> received) {
    std::map<std::string_view, std::size_t> by_key;
    std::vector<event_row> rows;
    for (run& each : received) {
        const std::string& key = each->what.message.key;
        const auto [place, is_new] = key.empty() ? std::pair(by_key.end(), true) : by_key.try_emplace(key, rows.size());
        if (is_new) rows.emplace_back();
        rows[key.empty() ? rows.size() - 1 : place->second].push_back(std::move(each));
    }
    {
        const std::lock_guard lock(mutex);
        for (event_row& row : rows) {
            const auto put_off = std::ranges::find_if(row, [&](const run& each) { return put_off_suspect(*each); });
            for (auto at = put_off; at != row.end(); ++at)
                add_ending(**at, release(at == put_off ? with_jitter(suspects_wait, random) : duration::zero()));
            row.erase(put_off, row.end());
            if (stopping)
                for (const run& each : std::exchange(row, {})) add_ending(*each, release());
            if (row.empty()) continue;
            in.waiting += static_cast<int>(row.size());
            in.ready.push_back(std::move(row));
        }
    }
    settler.set();
    start_rows(in);
}

// A message that keeps killing its workers must not take to the dead letters what they held beside it. So what has been
// through several crashes runs while this worker holds nothing else of that sort; the others are put off, unburnt.
bool event_worker_state::put_off_suspect(event_run& r) {
    if (r.what.crashes < suspect_after || r.duplicate) return false;
    if (suspects > 0) return true;
    ++suspects;
    r.suspect = true;
    return false;
}

void event_worker_state::start_rows(event_lane& in) {
    for (;;) {
        event_row next;
        {
            const std::lock_guard lock(mutex);
            if (stopping || in.ready.empty() || in.running >= in.slots) return;
            next = std::move(in.ready.front());
            in.ready.pop_front();
            in.waiting -= static_cast<int>(next.size());
            ++in.running;
            ++rows_running;
        }
        run_row(shared_from_this(), in, std::move(next));
    }
}

void event_worker_state::give_back_ready() {
    {
        const std::lock_guard lock(mutex);
        for (event_lane& lane : lanes) {
            for (event_row& row : lane.ready)
                for (const run& each : row) add_ending(*each, release());
            lane.ready.clear();
            lane.waiting = 0;
        }
    }
    settler.set();
}

// When to look again without a hint: when the next message falls due, and now and then.
task<time_point> event_worker_state::next_look(event_lane& in) {
    auto asking = with.from.next_due(in.of.name);
    const auto due = co_await std::move(asking);
    duration wait = how.poll;
    if (!due) transport_outage.failed(who(), "receive events", due.error());
    else if (due->has_value()) wait = std::min(how.poll, std::max(**due, shortest_look));
    co_return with.on.now() + wait;
}

} // namespace holdfast::detail
