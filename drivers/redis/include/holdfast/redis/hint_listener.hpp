// Hints that jobs can be claimed, from all processes: a thread that keeps a connection to the store's channel, from the
// first watch on. What comes is read by the runtime, if it can, and by that thread otherwise. A connection that was lost,
// silently or not, is made again; whoever watches then gets a hint, for some may have been missed. It may have a channel of
// its own beside, for parcels.
#pragma once

#include <condition_variable>
#include <functional>
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
    // The locator and the runtime must outlive it.
    hint_listener(const options& how, locator& places, std::string channel, runtime& on)
        : places_(places), channel_(std::move(channel)), timeout_(how.timeout), on_(on) {}
    // May wait for as long as a connection may take.
    ~hint_listener() { close(); }
    // Ends the listening; every parcel that was published before has been received then, unless the connection is lost.
    void close();
    hint_listener(const hint_listener&) = delete;
    hint_listener& operator=(const hint_listener&) = delete;

    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint);
    // What is published on `channel` goes to `parcel`, which must not throw or wait, on a runtime thread or on the
    // listening one, lent for it; one at a time. Before the first watch.
    void receive(std::string channel, std::function<void(std::string)> parcel);
    // Has the listening thread do something that may wait; close() waits for it. From a parcel.
    void then(std::function<void()> errand);

private:
    class attended;
    class reader;
    // When the server was last heard on a connection, and whether it was asked to say something since.
    struct pulse;
    enum class left : unsigned char { nothing, more, lost };

    void run();
    void listen();
    // Until the end; false: the connection is lost.
    bool listen_here(subscription& to);
    bool let_runtime_listen(subscription& to, readable_watch& watch);
    // What has come, up to some number, and what may have come after it.
    left take(subscription& from, result<subscription::heard> next, pulse& of, bool may_lend);
    void leave(subscription& from);
    void do_errands();
    void wake_thread();
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
    std::vector<std::function<void()>> errands_;
    bool stop_ = false;
    subscription* listening_ = nullptr;
    std::thread thread_;
};

} // namespace holdfast::redis
