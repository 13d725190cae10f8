#include <holdfast/redis/hint_listener.hpp>

#include <algorithm>

namespace holdfast::redis {

namespace {

using clock = std::chrono::steady_clock;

constexpr duration shortest_pause = std::chrono::milliseconds{10};
constexpr duration longest_pause = std::chrono::seconds{2};
constexpr duration longest_goodbye = std::chrono::milliseconds{200};

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

void hint_listener::close() {
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

void hint_listener::receive(std::string channel, std::function<void(std::string)> parcel) {
    own_channel_ = std::move(channel);
    parcel_ = std::move(parcel);
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
    std::vector<std::string> channels = {channel_};
    if (parcel_) channels.push_back(own_channel_);
    auto made = subscribe(*where, std::move(channels), timeout_);
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
        if (!heard) return;
        if (heard->alive) {
            heard_at = clock::now();
            asked = false;
            if (!std::exchange(subscribed, true)) watchers_.ring_all();
            if (heard->message) take(**made, std::move(*heard));
            continue;
        }
        if (clock::now() - heard_at < timeout_) continue;
        if (asked || !(*made)->probe()) return;
        heard_at = clock::now();
        asked = true;
    }
    if (parcel_) leave(**made);
}

// Many that have come meanwhile make one hint. Parcels come first: somebody waits for each.
void hint_listener::take(subscription& from, subscription::heard first) {
    std::vector<std::string> queues;
    result<subscription::heard> next = std::move(first);
    for (int i = 0; i < 1000 && next && next->alive; ++i) {
        if (next->message && parcel_ && next->channel == own_channel_) deliver(std::move(*next->message));
        else if (next->message && std::ranges::find(queues, *next->message) == queues.end())
            queues.push_back(std::move(*next->message));
        next = from.next(duration::zero());
    }
    if (queues.empty()) return;
    const lent_thread lending(on_, thread_loan::listener); // who gets the hint saves a change of threads
    watchers_.ring(queues);
}

void hint_listener::deliver(std::string parcel) {
    const lent_thread lending(on_, thread_loan::listener);
    parcel_(std::move(parcel));
}

// Nobody sends a parcel to a channel without listeners. Those that are on their way come before the server's word that there
// is none any more.
void hint_listener::leave(subscription& from) {
    if (!from.leave()) return;
    const auto until = clock::now() + longest_goodbye;
    while (clock::now() < until) {
        auto heard = from.next(until - clock::now());
        if (!heard || heard->left) return;
        if (heard->message && heard->channel == own_channel_) deliver(std::move(*heard->message));
    }
}

} // namespace holdfast::redis
