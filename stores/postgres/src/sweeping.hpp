// Forgetting what has been kept long enough, also in stores that no job worker looks after.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include <holdfast/postgres/pool.hpp>
#include <holdfast/postgres/statement_table.hpp>

#include "store_options.hpp"

namespace holdfast::postgres {

// What query::sweep wants, after what is there.
void add_sweep(parameters& to, const store_options& how);

// Any thread.
class sweeper final : pool::item {
public:
    sweeper(pool& of, const statement& what, const store_options& how);
    ~sweeper(); // waits for a sweep that is under way
    sweeper(const sweeper&) = delete;
    sweeper& operator=(const sweeper&) = delete;

    // Sweeps on a thread of the pool if the last time was long enough ago, else looks at a clock and that is all. Nobody waits
    // for it, and what fails is for the next time.
    void now_and_then() noexcept;

private:
    void run(slot with) noexcept override;
    bool sweep(slot with); // true: there is more

    pool& pool_;
    const statement& what_;
    parameters how_;
    std::atomic<time_point> next_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool under_way_ = false;
};

} // namespace holdfast::postgres
