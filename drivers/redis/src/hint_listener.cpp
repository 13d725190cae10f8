#include <holdfast/redis/hint_listener.hpp>

#include <algorithm>

namespace holdfast::redis {

namespace {

using clock = std::chrono::steady_clock;

constexpr duration shortest_pause = std::chrono::milliseconds{10};
constexpr duration longest_pause = std::chrono::seconds{2};

} // namespace

// What the destructor interrupts.
class hint_listener::attended {
public:
    attended(hint_listener& by, subscription& to) : by_(by) { set(&to); }
    ~attended() { set(nullptr); }
    attended(const attended&) = delete;
    attended& operator=(const attended&) = delete;

private:
    void set(subscription* to) {
        const std::lock_guard lock(by_.mutex_);
        by_.listening_ = to;
    }
    hint_listener& by_;
};

hint_listener::~hint_listener() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        if (listening_ != nullptr) listening_->interrupt();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

std::unique_ptr<job_watch> hint_listener::watch(std::vector<std::string> queues, std::function<void()> hint) {
    auto made = watchers_.add(std::move(queues), std::move(hint));
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    return made;
}

bool hint_listener::stopping() {
    const std::lock_guard lock(mutex_);
    return stop_;
}

bool hint_listener::pause(duration d) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, d, [&] { return stop_; });
}

void hint_listener::run() {
    duration wait = shortest_pause;
    do {
        const auto begun = clock::now();
        try {
            listen();
        } catch (...) { // out of memory, say: hints may be lost
        }
        wait = clock::now() - begun > longest_pause ? shortest_pause : std::min(2 * wait, longest_pause);
    } while (pause(wait));
}

void hint_listener::listen() {
    const auto where = places_.find();
    if (!where) return;
    auto made = subscribe(*where, channel_, timeout_);
    if (!made) {
        places_.doubt(*where);
        return;
    }
    const attended now(*this, **made);
    // A connection on which nothing was heard for the timeout is asked to say something, once.
    bool asked = true;
    bool subscribed = false;
    auto heard_at = clock::now();
    while (!stopping()) {
        auto heard = (*made)->next(timeout_);
        if (!heard) break;
        if (heard->alive) {
            heard_at = clock::now();
            asked = false;
            if (!std::exchange(subscribed, true)) watchers_.ring_all();
            if (heard->message) ring(**made, std::move(*heard->message));
            continue;
        }
        if (clock::now() - heard_at < timeout_) continue;
        if (asked || !(*made)->probe()) break;
        heard_at = clock::now();
        asked = true;
    }
}

// Many that have come meanwhile make one hint.
void hint_listener::ring(subscription& from, std::string first) {
    std::vector<std::string> queues = {std::move(first)};
    for (int i = 0; i < 1000; ++i) {
        auto more = from.next(duration::zero());
        if (!more || !more->alive) break;
        if (more->message && std::ranges::find(queues, *more->message) == queues.end())
            queues.push_back(std::move(*more->message));
    }
    const lent_thread lending(on_, thread_loan::listener); // who gets the hint saves a change of threads
    watchers_.ring(queues);
}

} // namespace holdfast::redis
