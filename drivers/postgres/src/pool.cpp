#include <holdfast/postgres/pool.hpp>

#include <algorithm>

namespace holdfast::postgres {

namespace {
constexpr duration grace = std::chrono::seconds{2}; // for the server to keep its own statement_timeout
}

slot& slot::operator=(slot&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    pool_ = std::exchange(other.pool_, nullptr);
    connection_ = std::move(other.connection_);
    return *this;
}

void slot::give_back() noexcept {
    if (pool_ != nullptr) std::exchange(pool_, nullptr)->put_back(std::move(connection_));
}

result<connection*> slot::open() {
    if (connection_ != nullptr && !connection_->alive()) connection_.reset();
    if (connection_ != nullptr) return connection_.get();
    const options& how = pool_->how();
    try {
        connection_ = std::make_unique<connection>(how);
        if (connection_->pooled()) pool_->saw_pooler();
        return connection_.get();
    } catch (...) {
        const compat::fault what = compat::current_fault();
        return fail(errc::unavailable, how.place() + ": cannot connect: " + how.without_secrets(what.message));
    }
}

pool::pool(options how, runtime& on)
    : how_(std::move(how)), on_(on), pooled_(how_.pooler), free_slots_(how_.connections) {
    for (std::size_t i = 0; i < how_.connections; ++i) threads_.emplace_back([this] { work_on(); });
    watcher_ = std::jthread([this](const std::stop_token& stop) { watch_over(stop); });
}

pool::~pool() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        for (sleeper* each : asleep_) each->woken.notify_one();
    }
    threads_.clear();
}

// Under the lock. The one that went to sleep last: its processor is still awake, and what it needs is near. It is told
// outside the lock, which it takes first.
pool::sleeper* pool::call_one() noexcept {
    if (asleep_.empty()) return nullptr;
    sleeper* latest = asleep_.back();
    asleep_.pop_back();
    latest->called = true;
    return latest;
}

bool pool::push(item& what) {
    sleeper* called = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (closing_) return false;
        (what.needs_slot ? waiting_ : ready_).push_back(&what);
        called = call_one();
    }
    if (called != nullptr) called->woken.notify_one();
    return true;
}

void pool::put_back(std::unique_ptr<connection> used) noexcept {
    if (used != nullptr && !used->session().is_open()) used.reset();
    sleeper* called = nullptr;
    {
        const std::lock_guard lock(mutex_);
        ++free_slots_;
        if (used != nullptr) idle_.push_back(std::move(used));
        if (!waiting_.empty()) called = call_one();
    }
    if (called != nullptr) called->woken.notify_one();
}

// Under the lock. Nothing when there is nothing to do now.
pool::item* pool::take(slot& with) {
    item* next = nullptr;
    if (!ready_.empty()) {
        next = ready_.front();
        ready_.pop_front();
    } else if (!waiting_.empty() &&
               (free_slots_ > 0 || waiting_.front()->give_up <= std::chrono::steady_clock::now())) {
        next = waiting_.front();
        waiting_.pop_front();
        if (free_slots_ > 0) with = take_slot();
    }
    return next;
}

// Under the lock, when there is one.
slot pool::take_slot() {
    --free_slots_;
    std::unique_ptr<connection> idle;
    if (!idle_.empty()) {
        idle = std::move(idle_.back());
        idle_.pop_back();
    }
    return {*this, std::move(idle)};
}

std::optional<slot> pool::take_free() {
    const std::lock_guard lock(mutex_);
    if (closing_ || free_slots_ == 0 || !waiting_.empty()) return std::nullopt;
    return take_slot();
}

void pool::work_on() {
    sleeper self;
    std::unique_lock lock(mutex_);
    for (;;) {
        slot with;
        if (item* next = take(with)) {
            // For the others, or to look after their time.
            sleeper* called = waiting_.empty() ? nullptr : call_one();
            lock.unlock();
            if (called != nullptr) called->woken.notify_one();
            next->run(std::move(with));
            lock.lock();
            continue;
        }
        if (closing_) return;
        self.called = false;
        asleep_.push_back(&self);
        const auto called = [&] { return self.called || closing_; };
        const time_point until = waiting_.empty() ? never : waiting_.front()->give_up; // that one may be gone meanwhile
        if (until == never) self.woken.wait(lock, called);
        else self.woken.wait_until(lock, until, called);
        if (!self.called) std::erase(asleep_, &self);
    }
}

pool::watch::watch(pool& of, connection& what, duration limit) : pool_(of), what_(what) {
    if (limit <= duration::zero()) return;
    const time_point until = saturating_add(saturating_add(std::chrono::steady_clock::now(), limit), grace);
    const std::lock_guard lock(pool_.watch_mutex_);
    pool_.watched_.emplace_back(&what, until);
}

pool::watch::~watch() {
    const std::lock_guard lock(pool_.watch_mutex_);
    std::erase_if(pool_.watched_, [&](const auto& each) { return each.first == &what_; });
}

void pool::watch_over(const std::stop_token& stop) {
    std::unique_lock lock(watch_mutex_);
    while (!stop.stop_requested()) {
        watch_changed_.wait_for(lock, stop, std::chrono::milliseconds{500}, [] { return false; });
        const time_point present = std::chrono::steady_clock::now();
        for (auto& [what, until] : watched_)
            if (until <= present) what->cut();
    }
}

} // namespace holdfast::postgres
