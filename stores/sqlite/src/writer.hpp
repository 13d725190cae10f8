// The one thread that writes. It takes every call that is waiting, runs each in a savepoint of one transaction, commits
// once, and resumes all of them: one flush to disk for many calls.
//
// A unit of work has the writer for itself until it ends. Meanwhile other calls wait, and are refused with
// errc::unavailable after busy_timeout, as if another process held the file.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <holdfast/job_watchers.hpp>

#include "item.hpp"

namespace holdfast::sqlite {

class writer {
public:
    writer(const options& how, const statements& texts, runtime& on, const job_watchers& who);
    ~writer() { close(); }
    // Finishes what is waiting, and takes nothing more. An open unit of work is rolled back.
    void close();

    // False: closing.
    bool submit(item& i) noexcept;
    // For the calls, the commit and the rollback of the unit of work that is open.
    bool submit_to_unit(item& i) noexcept;
    // From now on a missing file is created.
    void may_create() noexcept;

private:
    void run();
    item_list wait_for_calls();
    void process(item_list calls);
    void commit_group(item_list group);
    void serve_unit(item& opening);
    item* wait_for_unit_call();
    void refuse_overdue(std::unique_lock<std::mutex>& lock);

    std::optional<error> begin();
    std::optional<error> commit();
    bool in_transaction() const noexcept;
    void rollback() noexcept;
    std::optional<error> attempt(item& i, bool in_savepoint);
    void housekeeping();
    void wake_watchers();

    const options& how_;
    const statements& texts_;
    runtime& on_;
    const job_watchers& watchers_;
    // Of the thread alone.
    std::unique_ptr<connection> file_;
    std::unique_ptr<session> session_;
    std::size_t latest_group_ = 0;
    std::chrono::steady_clock::time_point swept_;

    std::mutex mutex_;
    std::condition_variable changed_;
    item_list waiting_;
    item_list unit_calls_;
    bool may_create_ = false;
    bool closing_ = false;
    std::jthread thread_;
};

struct writer_lane {
    writer& to;
    bool submit(item& i) noexcept { return to.submit(i); }
    static error refusal() { return store_closed(); }
};
struct unit_lane {
    writer& to;
    bool submit(item& i) noexcept { return to.submit_to_unit(i); }
    static error refusal() { return store_closed(); }
};

} // namespace holdfast::sqlite
