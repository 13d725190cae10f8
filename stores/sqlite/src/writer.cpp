#include "writer.hpp"

#include <algorithm>
#include <string>

#include "sweep.hpp"

namespace holdfast::sqlite {

namespace {

using std::chrono::steady_clock;

constexpr auto sweep_every = std::chrono::seconds{15};
constexpr int sweep_limit = 500;

error lost_transaction() {
    return {errc::unavailable, "sqlite: the transaction was rolled back, nothing of it was written", std::nullopt};
}

} // namespace

error current_error() noexcept {
    try {
        throw;
    } catch (const failed& e) {
        return e.what_failed();
    } catch (const std::exception& e) {
        return {errc::internal, "sqlite: " + std::string(e.what()), std::nullopt};
    } catch (...) {
        return {errc::internal, "sqlite: something that is not a std::exception was thrown", std::nullopt};
    }
}

writer::writer(const options& how, const statements& texts, runtime& on, const job_watchers& who)
    : how_(how), texts_(texts), on_(on), watchers_(who), swept_(steady_clock::now()), thread_([this] { run(); }) {}

void writer::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

bool writer::submit(item& i) noexcept {
    i.queued = steady_clock::now();
    {
        const std::lock_guard lock(mutex_);
        if (closing_) return false;
        waiting_.push(i);
    }
    changed_.notify_one();
    return true;
}

bool writer::submit_to_unit(item& i) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (closing_) return false;
        unit_calls_.push(i);
    }
    changed_.notify_one();
    return true;
}

void writer::may_create() noexcept {
    const std::lock_guard lock(mutex_);
    may_create_ = true;
}

void writer::run() {
    for (;;) {
        const item_list calls = wait_for_calls();
        if (calls.empty()) return;
        process(calls);
        wake_watchers();
        if (steady_clock::now() - swept_ >= sweep_every) housekeeping();
    }
}

// Empty: closing, and nothing is left.
item_list writer::wait_for_calls() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    // Callers that were resumed together come back together: wait for the others a little.
    if (latest_group_ > 1 && how_.group_commit_window > duration::zero())
        changed_.wait_for(lock, how_.group_commit_window, [&] { return closing_ || waiting_.size() >= latest_group_; });
    return waiting_.take();
}

void writer::process(item_list calls) {
    item_list group;
    while (item* next = calls.pop()) {
        if (next->what == item::kind::call) {
            group.push(*next);
            continue;
        }
        if (!group.empty()) commit_group(group.take());
        {
            const std::lock_guard lock(mutex_);
            waiting_.put_before(calls.take());
        }
        serve_unit(*next);
        return;
    }
    commit_group(group);
}

void writer::commit_group(item_list group) {
    if (group.empty()) return;
    const std::size_t size = group.size();
    latest_group_ = size;
    std::optional<error> problem = begin();
    item_list written;
    item_list refused;
    while (item* i = problem ? nullptr : group.pop()) {
        const auto why = attempt(*i, size > 1);
        if (why) i->refuse(*why);
        (why ? refused : written).push(*i);
        if (!in_transaction()) problem = why ? why : lost_transaction();
    }
    // A call alone in its group has no savepoint: its failure undoes the transaction.
    if (!problem && written.empty()) rollback();
    else if (!problem) problem = commit();

    while (item* i = group.pop()) written.push(*i); // not even tried
    while (item* i = refused.pop()) finish(*i, on_);
    while (item* i = written.pop()) {
        if (problem) i->refuse(*problem);
        finish(*i, on_);
    }
}

void writer::serve_unit(item& opening) {
    if (const auto problem = begin()) {
        opening.refuse(*problem);
        finish(opening, on_);
        return;
    }
    finish(opening, on_);
    std::optional<error> broken;
    while (item* i = wait_for_unit_call()) {
        if (!broken && !in_transaction()) broken = lost_transaction();
        switch (i->what) {
        case item::kind::unit_dropped:
            rollback();
            delete i;
            return;
        case item::kind::unit_rollback:
            rollback();
            finish(*i, on_);
            return;
        case item::kind::unit_commit:
            if (!broken) broken = commit();
            if (broken) i->refuse(*broken);
            rollback();
            finish(*i, on_);
            return;
        default: {
            const auto why = broken ? broken : attempt(*i, true);
            if (why) i->refuse(*why);
            finish(*i, on_);
        }
        }
    }
    rollback();
}

// Null: closing.
item* writer::wait_for_unit_call() {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (item* i = unit_calls_.pop()) return i;
        if (closing_) return nullptr;
        if (waiting_.empty()) changed_.wait(lock);
        else changed_.wait_until(lock, waiting_.front()->queued + how_.busy_timeout);
        refuse_overdue(lock);
    }
}

void writer::refuse_overdue(std::unique_lock<std::mutex>& lock) {
    const auto oldest = steady_clock::now() - how_.busy_timeout;
    item_list overdue;
    while (!waiting_.empty() && waiting_.front()->queued <= oldest) overdue.push(*waiting_.pop());
    if (overdue.empty()) return;
    lock.unlock();
    while (item* i = overdue.pop()) {
        i->refuse(
            {errc::unavailable,
             "sqlite: a unit of work has had the file for longer than busy_timeout, " + to_text(how_.busy_timeout),
             std::nullopt});
        finish(*i, on_);
    }
    lock.lock();
}

// Opens the file if need be, and takes it for writing.
std::optional<error> writer::begin() {
    try {
        if (file_ != nullptr && file_->moved()) {
            session_.reset();
            file_.reset();
            return error{errc::unavailable, "sqlite: " + how_.file + " was moved or deleted while it was open",
                         std::nullopt};
        }
        if (file_ == nullptr) {
            bool create = false;
            {
                const std::lock_guard lock(mutex_);
                create = std::exchange(may_create_, false);
            }
            file_ = std::make_unique<connection>(how_, create ? access::create : access::write);
            session_ = std::make_unique<session>(file_->handle(), texts_, how_);
        }
        session_->exec(query::begin);
        return std::nullopt;
    } catch (...) {
        return current_error();
    }
}

std::optional<error> writer::commit() {
    try {
        session_->exec(query::commit);
        return std::nullopt;
    } catch (...) {
        error why = current_error();
        // When the flush itself failed, the commit may be found again by whoever opens the file after a crash.
        if (sqlite3_extended_errcode(session_->handle()) == SQLITE_IOERR_FSYNC) why.code = errc::unknown_outcome;
        rollback();
        return why;
    }
}

bool writer::in_transaction() const noexcept {
    return session_ != nullptr && session_->in_transaction();
}

void writer::rollback() noexcept {
    try {
        if (in_transaction()) session_->exec(query::rollback);
    } catch (...) {
        session_.reset();
        file_.reset(); // closing it rolls back
    }
}

std::optional<error> writer::attempt(item& i, bool in_savepoint) {
    try {
        if (in_savepoint) session_->exec(query::savepoint);
        session_->tick();
        i.execute(*session_);
        if (in_savepoint) session_->exec(query::release);
        return std::nullopt;
    } catch (...) {
        error why = current_error();
        try {
            if (in_savepoint && in_transaction()) {
                session_->exec(query::rollback_to);
                session_->exec(query::release);
            }
        } catch (...) {
            rollback();
        }
        return why;
    }
}

// What was noted by a transaction that was undone makes a hint for nothing.
void writer::wake_watchers() {
    if (session_ == nullptr) return;
    const auto woken = std::exchange(session_->woken, {});
    if (woken.anywhere) watchers_.ring_all();
    else if (!woken.queues.empty()) watchers_.ring(woken.queues);
}

// Forgets what has expired, a little at a time.
void writer::housekeeping() {
    swept_ = steady_clock::now();
    if (begin()) return;
    try {
        session_->tick();
        const bool more = sweep(*session_, sweep_limit);
        if (!commit() && more) swept_ -= sweep_every;
    } catch (...) {
        rollback(); // nobody waits for it; the next one tries again
    }
}

} // namespace holdfast::sqlite
