#include "helper_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <holdfast/sleep.hpp>

#include "crash_report.hpp"

namespace holdfast::detail {

namespace {

constexpr duration idle_for = std::chrono::seconds{30}; // then a helper is ended
constexpr int look_every = 1000;                        // ms, for idle helpers

std::string read_all(const file_handle& from) {
    std::string text;
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(from.get(), piece, sizeof piece)) > 0;)
        text.append(piece, static_cast<std::size_t>(n));
    return text;
}

} // namespace

// A helper in the hands of one attempt.
class helper_pool::lodger final : public isolated_process {
public:
    lodger(self pool, helper_ref in) : pool_(std::move(pool)), in_(std::move(in)) {}
    ~lodger() override { pool_->give_back(in_); }
    task<isolated_ending> run(isolated_job job, job_context& context) override {
        return helper_pool::run(pool_, in_, std::move(job), context);
    }
    void kill() noexcept override { pool_->kill(in_); }

private:
    self pool_;
    helper_ref in_;
};

helper_pool::helper_pool(std::unique_ptr<zygote> from, pool_options how, runtime& on, logger& log)
    : zygote_(std::move(from)), how_(std::move(how)), on_(on), log_(log),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!bell_)
        throw failed({errc::unavailable, "the system gives no event: " + std::generic_category().message(errno), {}});
    thread_ = std::thread([this] { serve(); });
}

helper_pool::~helper_pool() {
    if (thread_.joinable()) stop();
}

void helper_pool::stop() noexcept {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake();
    thread_.join();
}

bool helper_pool::takes(const job_type& kind) const noexcept {
    return how_.kinds.contains(kind.options().name);
}

task<std::unique_ptr<isolated_process>> helper_pool::acquire(std::stop_token stop) {
    return acquire(shared_from_this(), std::move(stop));
}

task<std::unique_ptr<isolated_process>> helper_pool::acquire(self pool, std::stop_token stop) {
    const auto mine = std::make_shared<waiter>();
    {
        const std::lock_guard lock(pool->mutex_);
        pool->waiting_.push_back(mine);
    }
    pool->wake();
    {
        const std::stop_callback leaving(stop, [&] { mine->served.request_stop(); });
        co_await sleep_until(pool->on_, never, mine->served.get_token());
    }
    {
        const std::lock_guard lock(pool->mutex_);
        std::erase(pool->waiting_, mine);
        if (mine->got) co_return std::make_unique<lodger>(pool, std::move(mine->got));
    }
    if (!mine->refused.empty()) throw failed({errc::unavailable, mine->refused, std::nullopt});
    throw operation_cancelled("asked to stop before there was a process for it");
}

task<isolated_ending> helper_pool::run(self pool, helper_ref in, isolated_job job, job_context& context) {
    std::stop_source ended;
    {
        const std::lock_guard lock(pool->mutex_);
        if (in->wait_status || in->killed) throw job_crashed("it had ended before", "", in->killed);
        in->now = phase::running;
        in->context = &context;
        in->ended = ended;
        in->outgoing += to_bytes(frame_kind::run, encode(job));
    }
    pool->wake();
    {
        const std::stop_callback passing_on(context.stop_token(), [&] { pool->ask_to_stop(in); });
        co_await sleep_until(pool->on_, never, ended.get_token());
    }
    std::unique_lock lock(pool->mutex_);
    in->context = nullptr;
    if (in->ending) {
        in->now = phase::taken;
        co_return *std::exchange(in->ending, std::nullopt);
    }
    const auto status = in->wait_status;
    const bool killed = in->killed;
    lock.unlock();
    if (!status) { // nothing is waited for any more
        pool->kill(in);
        throw operation_cancelled("the runtime is stopping");
    }
    throw job_crashed(ending_in_words(*status), readable_stack(read_all(in->crash_report)), killed);
}

void helper_pool::ask_to_stop(const helper_ref& which) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (which->now != phase::running) return;
        which->outgoing += to_bytes(frame_kind::stop);
    }
    wake();
}

// Also one that is between two runs, or has just ended one: the next run throws.
void helper_pool::kill(const helper_ref& which) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (which->wait_status || which->killed) return;
        which->killed = true;
        to_kill_.push_back(which->id);
    }
    wake();
}

// Used again, unless its attempt was left in the middle.
void helper_pool::give_back(const helper_ref& which) noexcept {
    const bool broken = [&] {
        const std::lock_guard lock(mutex_);
        if (which->wait_status || which->killed) return false;
        if (which->now != phase::taken) return true;
        which->now = phase::idle;
        which->idle_since = on_.now();
        return false;
    }();
    if (broken) kill(which);
    wake();
}

void helper_pool::wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell_.get(), &one, sizeof one);
}

void helper_pool::serve() noexcept {
    while (look_around()) {
    }
}

// Waits for something to happen, and sees to it. False: the end.
bool helper_pool::look_around() {
    std::vector<pollfd> files = {{bell_.get(), POLLIN, 0}};
    std::vector<helper_ref> of;
    {
        const std::lock_guard lock(mutex_);
        if (!dead_) files.push_back({zygote_->file(), POLLIN, 0});
        for (const helper_ref& each : helpers_) {
            if (!each->socket) continue;
            const short wanted = static_cast<short>(each->outgoing.empty() ? POLLIN : POLLIN | POLLOUT);
            files.push_back({each->socket.get(), wanted, 0});
            of.push_back(each);
        }
    }
    if (::poll(files.data(), files.size(), look_every) < 0 && errno != EINTR) return false;
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto read = ::read(bell_.get(), &rung, sizeof rung);

    std::vector<std::stop_source> fire;
    std::vector<std::pair<log_level, std::string>> messages;
    bool finished = false;
    {
        const std::lock_guard lock(mutex_);
        const std::size_t first = files.size() - of.size();
        for (std::size_t i = 0; i < of.size(); ++i) {
            if (files[first + i].revents & (POLLIN | POLLHUP | POLLERR)) hear(*of[i]);
            if (!of[i]->outgoing.empty()) flush(*of[i]);
        }
        for (const pid_t each : std::exchange(to_kill_, {})) zygote_->kill(each);
        if (!dead_) hear_zygote();
        std::erase_if(helpers_, [](const helper_ref& each) { return each->wait_status.has_value(); });
        finished = stopping_;
        if (finished) end_all("the host is stopping");
        serve_waiters();
        retire_idle();
        ask_for_more();
        fire = std::exchange(to_fire_, {});
        messages = std::exchange(to_log_, {});
    }
    for (const auto& [level, text] : messages) log_.write(level, text);
    for (std::stop_source& each : fire) each.request_stop();
    if (finished) zygote_.reset(); // takes the helpers with it
    return !finished;
}

void helper_pool::hear_zygote() {
    for (;;) {
        auto heard = zygote_->receive();
        if (heard.dead) {
            dead_ = true;
            to_log_.emplace_back(log_level::error, "the process that starts helpers for isolated jobs has died; no "
                                                   "isolated job runs here until this program is started again");
            return end_all("the process that starts helpers has died");
        }
        if (heard.ended) {
            const auto found = std::ranges::find(helpers_, heard.ended->id, &helper::id);
            if (found != helpers_.end()) bury(**found, heard.ended->wait_status);
        } else if (heard.started) {
            --asked_;
            if (heard.started->id < 0) {
                const std::string why = "no helper process: " + std::generic_category().message(heard.started->problem);
                for (const auto& each : std::exchange(waiting_, {})) {
                    each->refused = why;
                    to_fire_.push_back(each->served);
                }
                continue;
            }
            auto made = std::make_shared<helper>();
            made->id = heard.started->id;
            made->socket = std::move(heard.started->socket);
            made->crash_report = std::move(heard.started->crash_report);
            ::fcntl(made->socket.get(), F_SETFL, O_NONBLOCK);
            helpers_.push_back(std::move(made));
        } else {
            return;
        }
    }
}

void helper_pool::hear(helper& from) {
    char piece[16 * 1024];
    for (;;) {
        const auto n = ::recv(from.socket.get(), piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (n == 0 || errno != EAGAIN) from.socket.close(); // the zygote will say how it ended
            return;
        }
        from.incoming.add({piece, static_cast<std::size_t>(n)});
        while (auto whole = from.incoming.next()) handle(from, std::move(*whole));
    }
}

void helper_pool::handle(helper& from, frame what) {
    switch (what.kind) {
    case frame_kind::ready:
        from.now = phase::idle;
        from.idle_since = on_.now();
        return;
    case frame_kind::failed: from.why_not = std::move(what.body); return;
    case frame_kind::progress:
        if (auto said = decode_progress(what.body); said && from.context != nullptr)
            from.context->progress(said->percent, std::move(said->note));
        return;
    case frame_kind::log:
        if (auto line = decode_log(what.body)) to_log_.push_back(std::move(*line));
        return;
    case frame_kind::ended:
        if (from.now != phase::running) return;
        from.ending = decode_ending(what.body);
        from.now = phase::ending;
        to_fire_.push_back(std::exchange(from.ended, std::stop_source(std::nostopstate)));
        return;
    case frame_kind::run:
    case frame_kind::stop: return;
    }
}

void helper_pool::flush(helper& to) {
    while (to.socket && !to.outgoing.empty()) {
        const auto n = ::send(to.socket.get(), to.outgoing.data(), to.outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            if (errno != EAGAIN) to.outgoing.clear(); // it is dead, and its end is on the way
            return;
        }
        to.outgoing.erase(0, static_cast<std::size_t>(n));
    }
}

void helper_pool::bury(helper& which, int wait_status) {
    if (which.socket) hear(which); // what it said last
    which.wait_status = wait_status;
    if (which.ended.stop_possible()) to_fire_.push_back(std::exchange(which.ended, std::stop_source(std::nostopstate)));
    if (which.now != phase::starting || stopping_) return;
    std::string why = which.why_not;
    if (why.empty()) why = "its process ended while it started: " + ending_in_words(wait_status);
    for (const auto& each : std::exchange(waiting_, {})) {
        each->refused = why;
        to_fire_.push_back(each->served);
    }
}

void helper_pool::serve_waiters() {
    for (const helper_ref& each : helpers_) {
        if (waiting_.empty()) return;
        if (each->now != phase::idle || each->killed) continue;
        each->now = phase::taken;
        waiting_.front()->got = each;
        to_fire_.push_back(waiting_.front()->served);
        waiting_.pop_front();
    }
}

void helper_pool::ask_for_more() {
    if (dead_ || stopping_) {
        for (const auto& each : std::exchange(waiting_, {})) {
            each->refused = stopping_ ? "the host is stopping" : "the process that starts helpers has died";
            to_fire_.push_back(each->served);
        }
        return;
    }
    const auto starting = static_cast<std::size_t>(asked_) +
                          static_cast<std::size_t>(std::ranges::count(helpers_, phase::starting, &helper::now));
    std::size_t total = helpers_.size() + static_cast<std::size_t>(asked_);
    for (std::size_t coming = starting; coming < waiting_.size() && total < static_cast<std::size_t>(how_.processes);
         ++coming, ++total) {
        if (!zygote_->ask_for_helper(how_.with_stores)) return;
        ++asked_;
    }
}

// It ends by itself when its socket closes.
void helper_pool::retire_idle() {
    const time_point now = on_.now();
    for (const helper_ref& each : helpers_) {
        if (each->now != phase::idle || now - each->idle_since < idle_for) continue;
        each->now = phase::ending;
        each->socket.close();
    }
}

// They die with the zygote.
void helper_pool::end_all(const std::string& why) {
    for (const helper_ref& each : helpers_)
        if (!each->wait_status) bury(*each, SIGKILL);
    for (const auto& each : std::exchange(waiting_, {})) {
        each->refused = why;
        to_fire_.push_back(each->served);
    }
}

} // namespace holdfast::detail
