// Hints that jobs can be claimed, from all processes: a thread that listens to the store's channel, from the first
// watch on. A connection that was lost, silently or not, is made again; whoever watches then gets a hint, for some may
// have been missed. It may have a channel of its own beside, for parcels.
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
    ~hint_listener() { close(); }
    // Ends the listening; every parcel that was published before has been received then, unless the connection is lost.
    void close();
    hint_listener(const hint_listener&) = delete;
    hint_listener& operator=(const hint_listener&) = delete;

    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint);
    // What is published on `channel` goes to `parcel`, which must not throw, on the listening thread, lent for it. Before
    // the first watch.
    void receive(std::string channel, std::function<void(std::string)> parcel);

private:
    class attended;
    void run();
    // Until the connection is lost or the end.
    void listen();
    void take(subscription& from, subscription::heard first);
    void deliver(std::string parcel);
    void leave(subscription& from);
    // False: the end has come.
    bool pause(duration d);
    bool stopping();

    locator& places_;
    const std::string channel_;
    std::string own_channel_;
    std::function<void(std::string)> parcel_;
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
