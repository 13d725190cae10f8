// Tells other processes that there is something to claim, and hears it from them: NOTIFY and LISTEN, on a connection and
// a thread of its own. A NOTIFY makes commits wait for each other, so those who enqueue do not send it themselves: what
// several of them have to say goes out together, a little later, and is lost when the process ends before that.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/job_watchers.hpp>

#include <holdfast/postgres/pool.hpp>

namespace holdfast::postgres {

// All members from any thread.
class bell {
public:
    explicit bell(pool& of) noexcept : pool_(of) {}
    ~bell();
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    // Something in these queues can be claimed, and is committed. Watchers here are told at once, others soon.
    void ring(const std::vector<std::string>& queues);
    // Null behind a proxy that pools transactions: it forwards no notification.
    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint);

private:
    class line;

    void start();
    void wake() const noexcept;
    void run(const std::stop_token& stop);
    void serve(line& open, const std::stop_token& stop);
    void send_all(line& open);
    std::vector<std::string> take_unsent();
    bool has_unsent() const;

    pool& pool_;
    job_watchers watchers_;
    mutable std::mutex mutex_;
    std::set<std::string, std::less<>> unsent_;
    int woken_ = -1; // an eventfd
    std::jthread thread_;
};

} // namespace holdfast::postgres
