#include <holdfast/redis/hint_listener.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace holdfast::redis {

namespace {

using clock = std::chrono::steady_clock;

constexpr duration shortest_pause = std::chrono::milliseconds{10};
constexpr duration longest_pause = std::chrono::seconds{2};
constexpr duration longest_goodbye = std::chrono::milliseconds{200};
constexpr int most_at_once = 1000;

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

// A connection on which nothing was heard for the timeout is asked to say something, once.
struct hint_listener::pulse {
    clock::time_point heard_at = clock::now();
    bool asked = true; // to subscribe
    bool subscribed = false;

    void heard() {
        heard_at = clock::now();
        asked = false;
    }
    // False: it is dead.
    bool goes_on(subscription& of, duration timeout) {
        if (clock::now() - heard_at < timeout) return true;
        if (asked || !of.probe()) return false;
        heard_at = clock::now();
        asked = true;
        return true;
    }
};

// Work that reads when there is something to read, again and again. It may be on its way when the listener has gone, and
// does nothing then.
class hint_listener::reader : public work, public std::enable_shared_from_this<reader> {
public:
    reader(hint_listener& by, subscription& from, readable_watch& when) : by_(by), from_(from), when_(when) {
        run = [](work& w, wake) noexcept { static_cast<reader&>(w).read(); };
    }

    void begin() {
        const std::lock_guard lock(mutex_);
        wait();
    }
    // Waits for the reading that is under way. The caller may read afterwards.
    void end() {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        if (when_.cancel()) self_.reset();
    }
    bool lost() const noexcept { return lost_; }
    // Reads what the runtime has not come to read. False: the connection is of no more use.
    bool goes_on(duration timeout) {
        const std::lock_guard lock(mutex_);
        if (lost_) return false;
        left after = left::more; // what the client library has taken from the socket nobody tells of
        while (after == left::more) after = by_.take(from_, from_.next(duration::zero()), heard_, false);
        return after == left::nothing && heard_.goes_on(from_, timeout);
    }

private:
    void read() noexcept {
        std::shared_ptr<reader> mine; // lives longer than the lock
        const std::lock_guard lock(mutex_);
        mine = std::move(self_);
        if (ended_ || lost_) return;
        try {
            const left after = by_.take(from_, from_.next(duration::zero()), heard_, false);
            if (after == left::nothing) return wait();
            if (after == left::more) {
                self_ = shared_from_this();
                if (!by_.on_.post(*this)) self_.reset();
                return;
            }
        } catch (...) { // out of memory, say
        }
        lost_ = true;
        by_.wake_thread();
    }
    // When the runtime has stopped nobody is told any more, but the thread looks now and then.
    void wait() noexcept {
        self_ = shared_from_this();
        if (!when_.wait(*this)) self_.reset();
    }

    hint_listener& by_;
    subscription& from_;
    readable_watch& when_;
    std::mutex mutex_;
    std::shared_ptr<reader> self_; // while the runtime has it
    pulse heard_;
    bool ended_ = false;
    std::atomic<bool> lost_ = false;
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

void hint_listener::then(std::function<void()> errand) {
    {
        const std::lock_guard lock(mutex_);
        errands_.push_back(std::move(errand));
    }
    changed_.notify_all();
}

void hint_listener::do_errands() {
    std::vector<std::function<void()>> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(errands_);
    }
    for (const auto& each : all) each();
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

void hint_listener::wake_thread() {
    {
        const std::lock_guard lock(mutex_);
    }
    changed_.notify_all();
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
    const auto descriptor = (*made)->descriptor();
    const auto watch = descriptor ? on_.watch_readable(*descriptor) : nullptr;
    const bool to_the_end = watch ? let_runtime_listen(**made, *watch) : listen_here(**made);
    if (to_the_end && parcel_) leave(**made);
    do_errands();
}

bool hint_listener::listen_here(subscription& to) {
    pulse heard;
    while (!stopping()) {
        if (take(to, to.next(timeout_), heard, true) == left::lost || !heard.goes_on(to, timeout_)) return false;
        do_errands();
    }
    return true;
}

bool hint_listener::let_runtime_listen(subscription& to, readable_watch& watch) {
    const auto reads = std::make_shared<reader>(*this, to, watch);
    const auto end = [](reader* of) { of->end(); };
    const std::unique_ptr<reader, decltype(end)> at_the_end(reads.get(), end);
    reads->begin();
    bool fine = true;
    while (fine && !stopping()) {
        do_errands();
        std::unique_lock lock(mutex_);
        const bool called =
            changed_.wait_for(lock, timeout_, [&] { return stop_ || reads->lost() || !errands_.empty(); });
        lock.unlock();
        fine = called ? !reads->lost() : reads->goes_on(timeout_);
    }
    return fine;
}

// Many that have come meanwhile make one hint. Parcels come first: somebody waits for each.
hint_listener::left hint_listener::take(subscription& from, result<subscription::heard> next, pulse& of,
                                        bool may_lend) {
    const auto loan = may_lend ? thread_loan::listener : thread_loan::none;
    std::vector<std::string> queues;
    int count = 0;
    for (; next && next->alive; next = from.next(duration::zero())) {
        if (next->message && parcel_ && next->channel == own_channel_) {
            const lent_thread lending(on_, loan); // who gets it saves a change of threads
            parcel_(std::move(*next->message));
        } else if (next->message && std::ranges::find(queues, *next->message) == queues.end()) {
            queues.push_back(std::move(*next->message));
        }
        if (++count == most_at_once) break;
    }
    const lent_thread lending(on_, loan);
    if (count > 0) of.heard();
    if (count > 0 && !std::exchange(of.subscribed, true)) watchers_.ring_all();
    else if (!queues.empty()) watchers_.ring(queues);
    if (!next) return left::lost;
    return count == most_at_once ? left::more : left::nothing;
}

// Nobody sends a parcel to a channel without listeners. Those that are on their way come before the server's word that there
// is none any more.
void hint_listener::leave(subscription& from) {
    if (!from.leave()) return;
    const auto until = clock::now() + longest_goodbye;
    while (clock::now() < until) {
        auto heard = from.next(until - clock::now());
        if (!heard || heard->left) return;
        if (heard->message && heard->channel == own_channel_) parcel_(std::move(*heard->message));
    }
}

} // namespace holdfast::redis
