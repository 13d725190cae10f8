#include "file_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "job_calls.hpp"

namespace holdfast::sqlite {

namespace {

using namespace std::chrono_literals;

constexpr duration reopen_after = 1s;
constexpr duration first_pause = 50us;
constexpr duration longest_pause = 50ms;
constexpr duration longest_commit = 2s; // from its last write to the log until others can see it, on a slow disk
// Two looks at the file are so far apart: a single write is seen at once, those who keep writing less often.
constexpr duration shortest_gap = 200us;
constexpr duration longest_gap = 5ms;

timespec to_timespec(duration d) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(d);
    return {seconds.count(), (d - seconds).count()};
}

struct descriptor {
    int number;
    ~descriptor() {
        if (number >= 0) ::close(number);
    }
};

// Grows with every commit of another connection.
class data_version {
public:
    explicit data_version(sqlite3* db) : db_(db), asked_(compile(db, "PRAGMA data_version", true)) { changed(); }
    bool changed() {
        use row(db_, asked_.get());
        row.step();
        const auto present = row.value<std::int64_t>();
        return std::exchange(latest_, present) != present;
    }

private:
    sqlite3* db_;
    statement asked_;
    std::int64_t latest_ = 0;
};

} // namespace

void file_watch::start() {
    const std::lock_guard lock(mutex_);
    if (closed_ || thread_.joinable()) return;
    stopped_ = ::eventfd(0, EFD_CLOEXEC);
    if (stopped_ < 0) return;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void file_watch::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (!thread_.joinable()) return;
    thread_.request_stop();
    static_cast<void>(::eventfd_write(stopped_, 1));
    thread_.join();
    ::close(std::exchange(stopped_, -1));
}

void file_watch::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        try {
            watch_file(stop);
        } catch (...) { // not prepared yet, replaced, out of descriptors: callers poll meanwhile
        }
        pause(reopen_after);
    }
}

void file_watch::pause(duration d) const noexcept {
    const timespec left = to_timespec(d);
    pollfd end{stopped_, POLLIN, 0};
    ::ppoll(&end, 1, &left, nullptr);
}

// As long as our connection is open, nobody removes the log.
void file_watch::watch_file(const std::stop_token& stop) {
    const connection file(how_, access::read);
    session reads(file.handle(), texts_, how_);
    data_version version(file.handle());
    const descriptor changes{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    const std::string log = how_.file + "-wal";
    const bool told = ::inotify_add_watch(changes.number, log.c_str(), IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF) >= 0;
    look(reads); // what was committed before; without inotify this is all, every reopen_after
    if (!told) return;
    using clock = std::chrono::steady_clock;
    auto looked = clock::now();
    auto written = looked; // the latest sign of it
    duration gap = shortest_gap;
    while (!stop.stop_requested()) {
        if (version.changed()) {
            gap = clock::now() - looked < 2 * gap ? std::min(2 * gap, longest_gap) : shortest_gap;
            look(reads);
            looked = written = clock::now();
            pause(gap);
            continue;
        }
        // The log is written to before the commit can be seen, and we may have come in between.
        const duration quiet = clock::now() - written;
        const duration wait = quiet < longest_commit ? std::clamp(quiet / 4, first_pause, longest_pause) : forever;
        const sign seen = wait_for_write(changes.number, wait);
        if (seen == sign::gone) return;
        if (seen == sign::none) continue;
        written = clock::now();
        pause(first_pause);
    }
}

file_watch::sign file_watch::wait_for_write(int changes, duration at_most) const {
    pollfd waiting[] = {{changes, POLLIN, 0}, {stopped_, POLLIN, 0}};
    const timespec left = to_timespec(at_most);
    if (::ppoll(waiting, 2, at_most == forever ? nullptr : &left, nullptr) < 0 && errno != EINTR) return sign::gone;
    sign seen = sign::none;
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (ssize_t size = 0; (size = ::read(changes, buffer.data(), buffer.size())) > 0;) {
        for (ssize_t at = 0; at < size;) {
            inotify_event event;
            std::memcpy(&event, buffer.data() + at, sizeof event);
            if ((event.mask & IN_MODIFY) == 0) return sign::gone;
            seen = sign::written;
            at += static_cast<ssize_t>(sizeof event + event.len);
        }
    }
    return seen;
}

void file_watch::look(session& reads) const {
    std::vector<std::string> ready;
    reads.exec(query::begin_read);
    reads.tick();
    for (const std::string& queue : who_.queues())
        if (next_due(reads, {queue}) == duration::zero()) ready.push_back(queue);
    reads.exec(query::commit);
    if (!ready.empty()) who_.ring(ready);
}

} // namespace holdfast::sqlite
