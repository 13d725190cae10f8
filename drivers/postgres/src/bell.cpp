#include <holdfast/postgres/bell.hpp>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <holdfast/postgres/naming.hpp>

namespace holdfast::postgres {

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr duration longest_gap = 5ms;
constexpr duration self_test = 1s;  // for our own notification to come back
constexpr duration deaf_for = 1min; // until a proxy that swallowed it is asked again
constexpr duration first_pause = 50ms;
constexpr duration longest_pause = 5s;

void wait_until(steady_clock::time_point until, int woken, int heard) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    pollfd both[] = {{woken, POLLIN, 0}, {heard, POLLIN, 0}}; // a negative descriptor is left out
    ::poll(both, 2, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    eventfd_t ignored = 0;
    if ((both[0].revents & POLLIN) != 0) static_cast<void>(::eventfd_read(woken, &ignored));
}

std::int64_t random_lock() {
    std::random_device device;
    const auto bits = (std::uint64_t{device()} << 32 | device()) | 1;
    return static_cast<std::int64_t>(bits);
}

} // namespace

// One connection. Throws what libpqxx throws; then it is of no more use.
class bell::line {
public:
    explicit line(bell& of)
        : of_(of), connection_(of.pool_.how()), channel_(channel_name(of.pool_.how().name)),
          notify_{"hf_" + of.pool_.how().name + "_notify",
                  "SELECT count(pg_notify($1::text, q)) FROM unnest($2::text[]) q"} {
        if (connection_.pooled()) {
            of.pool_.saw_pooler();
            return;
        }
        pqxx::nontransaction setup(connection_.session());
        setup.exec("SET synchronous_commit TO off"); // nobody waits for a hint
    }
    ~line() { of_.listener_ = 0; }
    line(const line&) = delete;
    line& operator=(const line&) = delete;

    bool listens() const noexcept { return ear_.has_value(); }
    int socket() { return listens() ? connection_.session().sock() : -1; }

    // False: a proxy gives us another session each time, and swallows what is meant for ours.
    bool listen() {
        {
            const pool::watch limit(of_.pool_, connection_, of_.pool_.how().listen_check);
            ear_.emplace(connection_.session(), channel_,
                         [this](std::string_view queue, int backend) { hear(queue, backend); });
        }
        send({""});
        const auto give_up = steady_clock::now() + self_test;
        for (take(); !heard_myself_ && steady_clock::now() < give_up; take()) wait_until(give_up, -1, socket());
        if (heard_myself_) listen_for_letters();
        else ear_.reset();
        return heard_myself_;
    }
    void send(const std::vector<std::string>& queues) {
        parameters p;
        p.one(column::text, std::string_view(channel_));
        p.many(column::text, queues, [](const std::string& q) { return std::string_view(q); });
        run(notify_, p);
    }
    void check() { run({{}, "SELECT 1"}, {}); }
    void take() {
        for (;;) {
            connection_.session().get_notifs();
            if (heard_.empty() && messages_.empty()) return;
            if (!messages_.empty()) read_letters(std::exchange(messages_, {}));
            if (!heard_.empty()) of_.watchers_.ring(std::exchange(heard_, {}));
        }
    }
    pqxx::result run(const statement& what, const parameters& with) {
        const pool::watch limit(of_.pool_, connection_, of_.pool_.how().listen_check);
        pqxx::nontransaction alone(connection_.session());
        return connection_.run(alone, what, with, !of_.pool_.pooled());
    }

private:
    void listen_for_letters() {
        const std::string channel = of_.own_channel();
        if (channel.empty()) return;
        {
            const pool::watch limit(of_.pool_, connection_, of_.pool_.how().listen_check);
            letterbox_.emplace(connection_.session(), channel,
                               [this](std::string_view message, int) { messages_.emplace_back(message); });
        }
        end_soon_without_host();
        const std::int64_t lock = random_lock();
        parameters p;
        p.one(column::int8, lock);
        run({{}, "SELECT pg_advisory_lock($1::int8)"}, p);
        of_.listener_ = lock;
        read_letters({});
    }
    // A host that vanishes says no goodbye: the server asks after it as we ask after the server, and lets go of the session and
    // its lock after twice listen_check. On a Unix socket there is nothing to ask.
    void end_soon_without_host() {
        const auto check = std::chrono::ceil<std::chrono::seconds>(of_.pool_.how().listen_check);
        const std::int64_t silence = std::clamp<std::int64_t>(check.count(), 1, 3600);
        parameters p;
        p.one(column::int8, silence).one(column::int8, std::max<std::int64_t>(silence / 4, 1));
        p.one(column::int8, 2000 * silence);
        run({{},
             "SELECT set_config('tcp_keepalives_idle', $1::int8::text, false), "
             "set_config('tcp_keepalives_interval', $2::int8::text, false), "
             "set_config('tcp_keepalives_count', '4', false), "
             "set_config('tcp_user_timeout', $3::int8::text, false)"},
            p);
    }
    void read_letters(const std::vector<std::string>& messages) {
        const std::lock_guard lock(of_.letters_mutex_);
        if (!of_.letters_) return;
        of_.letters_(messages, [this](const statement& what, const parameters& with) { return run(what, with); });
    }
    // What this connection has sent itself was told here when it happened.
    void hear(std::string_view queue, int backend) {
        if (backend != connection_.served_by().id) heard_.emplace_back(queue);
        else if (queue.empty()) heard_myself_ = true;
    }

    bell& of_;
    connection connection_;
    const std::string channel_;
    const statement notify_;
    std::optional<compat::listener> ear_;
    std::optional<compat::listener> letterbox_;
    bool heard_myself_ = false;
    std::vector<std::string> heard_;
    std::vector<std::string> messages_;
};

bell::~bell() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    wake();
    thread_.join();
    ::close(woken_);
}

bell::turn::turn(bell& of, const std::vector<std::string>& queues) : of_(of), queues_(queues) {
    if (queues.empty()) return;
    const std::lock_guard lock(of_.mutex_);
    in_commit_ = of_.turns_.begin(steady_clock::now());
}

bell::turn::~turn() {
    if (!in_commit_) return;
    const std::lock_guard lock(of_.mutex_);
    of_.turns_.ended(steady_clock::now());
}

void bell::turn::committed() {
    if (in_commit_) of_.watchers_.ring(queues_);
    else of_.ring(queues_);
}

void bell::ring(const std::vector<std::string>& queues) {
    if (queues.empty()) return;
    watchers_.ring(queues);
    const std::lock_guard lock(mutex_);
    turns_.told(steady_clock::now());
    const bool idle = unsent_.empty();
    unsent_.insert(queues.begin(), queues.end());
    if (!idle) return;
    start();
    wake();
}

std::unique_ptr<job_watch> bell::watch(std::vector<std::string> queues, std::function<void()> hint) {
    if (pool_.pooled()) return nullptr;
    auto added = watchers_.add(std::move(queues), std::move(hint));
    const std::lock_guard lock(mutex_);
    start();
    wake();
    return added;
}

void bell::receive(std::string channel, letters heard) {
    const std::lock_guard lock(letters_mutex_);
    own_channel_ = std::move(channel);
    letters_ = std::move(heard);
}

void bell::refuse_letters() {
    const std::lock_guard lock(letters_mutex_);
    letters_ = {};
}

std::string bell::own_channel() {
    const std::lock_guard lock(letters_mutex_);
    return own_channel_;
}

void bell::run_soon(const statement& what, parameters with) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) return;
    errands_.emplace_back(&what, std::move(with));
    wake();
}

void bell::run_errands(line& open) {
    std::vector<std::pair<const statement*, parameters>> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(errands_);
    }
    for (const auto& [what, with] : all) open.run(*what, with);
}

void bell::start() {
    if (thread_.joinable()) return;
    woken_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void bell::wake() const noexcept {
    static_cast<void>(::eventfd_write(woken_, 1));
}

std::vector<std::string> bell::take_unsent() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all(unsent_.begin(), unsent_.end());
    unsent_.clear();
    return all;
}

bool bell::has_unsent() const {
    const std::lock_guard lock(mutex_);
    return !unsent_.empty();
}

void bell::send_all(line& open) {
    const auto queues = take_unsent();
    try {
        open.send(queues);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        unsent_.insert(queues.begin(), queues.end()); // for the next connection
        throw;
    }
}

void bell::run(const std::stop_token& stop) {
    duration pause = first_pause;
    while (!stop.stop_requested()) {
        try {
            line open(*this);
            pause = first_pause;
            serve(open, stop);
        } catch (...) { // the server is away, or the connection was lost: callers poll meanwhile
        }
        const auto again = steady_clock::now() + pause;
        while (!stop.stop_requested() && steady_clock::now() < again) wait_until(again, woken_, -1);
        pause = std::min(2 * pause, longest_pause);
        while (!stop.stop_requested() && !has_unsent() && watchers_.empty())
            wait_until(steady_clock::time_point::max(), woken_, -1);
    }
}

void bell::serve(line& open, const std::stop_token& stop) {
    auto may_listen = steady_clock::now();
    auto may_send = may_listen;
    duration gap = shortest_gap;
    bool waited = false; // something to send had to wait for may_send
    auto may_check = may_listen;
    while (!stop.stop_requested()) {
        auto present = steady_clock::now();
        if (!pool_.pooled() && !open.listens() && !watchers_.empty() && present >= may_listen) {
            if (open.listen()) watchers_.ring_all(); // nobody knows what was missed
            else may_listen = present + deaf_for;
            may_check = steady_clock::now() + pool_.how().listen_check;
        }
        if (has_unsent() && present < may_send) {
            waited = true;
        } else if (has_unsent()) {
            send_all(open);
            gap = std::exchange(waited, false) ? std::min(2 * gap, longest_gap) : shortest_gap;
            may_send = steady_clock::now() + gap;
        }
        run_errands(open);
        if (open.listens() && steady_clock::now() >= may_check) {
            open.check();
            may_check = steady_clock::now() + pool_.how().listen_check;
        }
        if (open.listens()) open.take(); // also what came with the answer to a check: the socket is silent about that
        present = steady_clock::now();
        auto next = present + deaf_for;
        if (has_unsent()) next = may_send;
        if (open.listens()) next = std::min(next, may_check);
        wait_until(next, woken_, open.socket());
    }
    run_errands(open);
}

} // namespace holdfast::postgres
