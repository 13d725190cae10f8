// Hints that jobs can be claimed, from all processes: a thread that listens to the store's channel, from the first
// watch on. A connection that was lost, silently or not, is made again; whoever watches then gets a hint, for some may
// have been missed.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/job_watchers.hpp>
#include <holdfast/runtime.hpp>

#include <holdfast/redis/locator.hpp>

namespace holdfast::redis {

// Any thread.
class hint_listener {
public:
    // The locator and the runtime, to which it lends its thread, must outlive it.
    hint_listener(const options& how, locator& places, std::string channel, runtime& on)
        : places_(places), channel_(std::move(channel)), timeout_(how.timeout), on_(on) {}
    // May wait for as long as a connection may take.
    ~hint_listener();
    hint_listener(const hint_listener&) = delete;
    hint_listener& operator=(const hint_listener&) = delete;

    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint);

private:
    class attended;
    void run();
    // Until the connection is lost or the end.
    void listen();
    void ring(subscription& from, std::string first);
    // False: the end has come.
    bool pause(duration d);
    bool stopping();

    locator& places_;
    const std::string channel_;
    const duration timeout_;
    runtime& on_;
    job_watchers watchers_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_ = false;
    subscription* listening_ = nullptr;
    std::thread thread_;
};

} // namespace holdfast::redis
