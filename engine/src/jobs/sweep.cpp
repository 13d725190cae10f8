// Recovers what dead workers left behind.
#include <algorithm>

#include "worker_state.hpp"

namespace holdfast::detail {

namespace {

constexpr duration sweep_again = std::chrono::seconds{5}; // after one that did not reach the store

std::string summary(const recovery& r) {
    std::string text = "recovered " + std::to_string(r.total()) + (r.total() == 1 ? " stale job: " : " stale jobs: ") +
                       std::to_string(r.requeued) + " requeued, " + std::to_string(r.failed) + " failed, " +
                       std::to_string(r.deleted) + " deleted";
    if (r.dead_letter > 0) text += ", " + std::to_string(r.dead_letter) + " dead-lettered";
    return text;
}

void add(recovery& to, const recovery& more) noexcept {
    to.requeued += more.requeued;
    to.failed += more.failed;
    to.deleted += more.deleted;
    to.dead_letter += more.dead_letter;
}

} // namespace

// Workers that were started together do not sweep together: the first time is anywhere within the interval, the
// others are off by up to a quarter.
task<void> worker_state::sweep(self s) {
    runtime& on = s->with.on;
    co_await resume_on(on);
    auto random = s->draw();
    const auto part_of = [&](duration d) {
        return d <= duration::zero()
                   ? d
                   : duration{static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(d.count()))};
    };
    time_point next = saturating_add(on.now(), part_of(s->how.sweep));
    for (;;) {
        auto waiting = s->sweeper.wait(on, next);
        if (!co_await std::move(waiting)) co_return;
        {
            const locked in(*s);
            if (s->stopping) co_return;
        }
        if (on.now() < next) continue;
        auto recovering = s->recover();
        const bool fine = co_await std::move(recovering);
        const duration every = fine ? s->how.sweep : std::min(s->how.sweep, sweep_again);
        next = saturating_add(on.now(), every - every / 4 + part_of(every / 2));
    }
}

// False: the store did not answer.
task<bool> worker_state::recover() {
    recovery total;
    bool fine = true;
    while (fine) {
        auto recovering = with.store.recover_stale(how.recovery_limit);
        const auto found = co_await std::move(recovering);
        fine = found.has_value();
        if (!fine) {
            store_failed(duty::recover, found.error());
            break;
        }
        store_answered(duty::recover);
        add(total, *found);
        if (found->total() < how.recovery_limit || hurry.stop_requested()) break;
    }
    if (total.total() == 0) co_return fine;
    {
        const locked in(*this);
        counts.last_recovery = total;
        add(counts.recovered, total);
        last_recovery_at = with.on.now();
    }
    with.log.info(summary(total));
    if (total.requeued > 0) hint();
    co_return fine;
}

} // namespace holdfast::detail
