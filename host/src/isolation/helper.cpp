#include "helper.hpp"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <holdfast/task_scope.hpp>

namespace holdfast::detail {

namespace {

constexpr int progress_every = 100; // ms

// One attempt, kept until its coroutine is gone.
struct helper_run {
    helper_run(isolated_job what, job_type& of, const helper_parts& with)
        : job(std::move(what)), kind(of), context({.id = job.id,
                                                   .token = job.token,
                                                   .type = of.options().name,
                                                   .queue = job.queue,
                                                   .attempt = job.attempt,
                                                   .max_attempts = job.max_attempts,
                                                   .crash_count = job.crash_count,
                                                   .generation = job.generation,
                                                   .extra = &job.extra},
                                                  with.on, with.log, stop.get_token(), with.client) {}

    isolated_job job;
    job_type& kind;
    std::stop_source stop;
    job_context context;
};

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

void send_progress(helper_link& link, job_context& context) {
    if (const auto said = context.take_progress()) link.send(frame_kind::progress, encode(*said));
}

task<void> attempt_it(std::shared_ptr<helper_run> run, helper_link& link, const helper_parts& with) {
    co_await resume_on(with.on);
    auto running = run_isolated(run->kind, with.rules, std::move(run->job.what), run->job.so_far, run->context,
                                random_series(random_seed()));
    const auto ended = co_await std::move(running);
    std::cout.flush();
    std::fflush(nullptr); // this process does not end as others do
    send_progress(link, run->context);
    link.send(frame_kind::ended, encode(ended));
}

std::shared_ptr<helper_run> begin(const frame& asked, const helper_parts& with) {
    auto job = decode_job(asked.body);
    job_type* kind = job ? with.kinds.find(job->what.type) : nullptr;
    return kind == nullptr ? nullptr : std::make_shared<helper_run>(std::move(*job), *kind, with);
}

} // namespace

void helper_link::send(frame_kind kind, std::string_view body) noexcept {
    try {
        const std::string bytes = to_bytes(kind, body);
        const std::lock_guard lock(mutex_);
        for (std::size_t sent = 0; sent < bytes.size();) {
            const auto n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return;
            sent += static_cast<std::size_t>(n);
        }
    } catch (const std::bad_alloc&) { // nothing can be said any more: a helper without memory is as good as dead
        ::_exit(1);
    }
}

std::optional<frame> helper_link::receive(int wait_ms) {
    for (;;) {
        if (auto whole = received_.next()) return whole;
        pollfd ready{socket_, POLLIN, 0};
        const int found = ::poll(&ready, 1, wait_ms);
        if (found == 0) return std::nullopt;
        if (found < 0 && errno == EINTR) continue;
        char piece[16 * 1024];
        const auto n = found < 0 ? -1 : ::recv(socket_, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            open_ = false;
            return std::nullopt;
        }
        received_.add({piece, static_cast<std::size_t>(n)});
    }
}

void link_logger::write(log_level level, std::string_view message) noexcept {
    if (enabled(level)) to_.send(frame_kind::log, encode(level, message));
}

void serve_attempts(helper_link& link, const helper_parts& with) {
    task_scope attempts;
    std::shared_ptr<helper_run> latest;
    while (link.open()) {
        const bool busy = attempts.running() > 0;
        const auto asked = link.receive(busy ? progress_every : -1);
        if (!asked) {
            if (latest) send_progress(link, latest->context);
        } else if (asked->kind == frame_kind::stop) {
            if (latest) latest->stop.request_stop();
        } else if (asked->kind == frame_kind::run) {
            latest = begin(*asked, with);
            if (!latest) ::_exit(3); // the worker knows another program
            attempts.spawn(attempt_it(latest, link, with));
        }
    }
    ::_exit(0); // whatever still runs has nobody to tell
}

void limit_memory(std::uint64_t bytes) {
    std::ofstream("/proc/self/oom_score_adj") << 500;
    if (bytes == 0) return;
    const rlimit most{bytes, bytes};
    ::setrlimit(RLIMIT_AS, &most);
}

} // namespace holdfast::detail
