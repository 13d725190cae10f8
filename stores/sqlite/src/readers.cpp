#include "readers.hpp"

#include <memory>
#include <optional>

namespace holdfast::sqlite {

namespace {

// One thread's connection, opened when it is first needed, and again after the file was replaced.
class reading {
public:
    reading(const options& how, const statements& texts) noexcept : how_(how), texts_(texts) {}

    // In one transaction, so that a call sees one state of the file.
    std::optional<error> attempt(item& i) {
        try {
            open();
            session_->exec(query::begin_read);
            session_->tick();
            i.execute(*session_);
            session_->exec(query::commit);
            return std::nullopt;
        } catch (...) {
            error why = current_error();
            session_.reset();
            file_.reset();
            return why;
        }
    }

private:
    void open() {
        if (file_ != nullptr && !file_->moved()) return;
        session_.reset();
        file_ = std::make_unique<connection>(how_, access::read);
        session_ = std::make_unique<session>(file_->handle(), texts_, how_);
    }

    const options& how_;
    const statements& texts_;
    std::unique_ptr<connection> file_;
    std::unique_ptr<session> session_;
};

} // namespace

readers::readers(const options& how, const statements& texts, runtime& on, int threads)
    : how_(how), texts_(texts), on_(on) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

void readers::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    changed_.notify_all();
    threads_.clear(); // joins
}

bool readers::submit(item& i) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (closing_) return false;
        waiting_.push(i);
    }
    changed_.notify_one();
    return true;
}

void readers::run() {
    reading mine(how_, texts_);
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
        item* next = waiting_.pop();
        if (next == nullptr) return;
        lock.unlock();
        if (const auto why = mine.attempt(*next)) next->refuse(*why);
        finish(*next, on_);
        lock.lock();
    }
}

} // namespace holdfast::sqlite
