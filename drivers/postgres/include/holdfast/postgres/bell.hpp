// Tells other processes that there is something to claim, and hears it from them: NOTIFY and LISTEN, on a connection and
// a thread of its own. Commits that carry a NOTIFY wait for each other, all over the server. So one that comes after a
// while of silence carries its own, which is the shortest way to somebody idle; in a stream of them, what several have to
// say goes out together from that thread, a little later, and is lost when the process ends before that.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/job_watchers.hpp>

#include <holdfast/postgres/notify_turns.hpp>
#include <holdfast/postgres/pool.hpp>

namespace holdfast::postgres {

// All members from any thread.
class bell {
public:
    explicit bell(pool& of) noexcept : pool_(of) {}
    ~bell();
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    // A commit that will make something in these queues claimable. One thread; the queues and the bell outlive it.
    class turn {
    public:
        ~turn();
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;

        // The caller sends the NOTIFY in the transaction itself, with ring() of the schema.
        bool in_commit() const noexcept { return in_commit_; }
        // Watchers here are told at once, others too if in_commit(), else soon. Not called: nothing was committed, or the one
        // whom it is for has been told.
        void committed();

    private:
        friend class bell;
        turn(bell& of, const std::vector<std::string>& queues);

        bell& of_;
        const std::vector<std::string>& queues_;
        bool in_commit_ = false;
    };
    turn take_turn(const std::vector<std::string>& queues) { return turn(*this, queues); }

    // Something in these queues can be claimed, and is committed. Watchers here are told at once, others soon.
    void ring(const std::vector<std::string>& queues);
    // Null behind a proxy that pools transactions: it forwards no notification.
    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint);

    // Asks the server on the connection that listens. Throws what libpqxx throws.
    using asking = std::function<pqxx::result(const statement&, const parameters&)>;
    // What is told on this channel, which nobody else listens to: some messages, on the thread of the bell; none when it begins
    // to listen, for nobody knows what was missed. May throw what `asking` does. Before the first watch.
    using letters = std::function<void(const std::vector<std::string>& messages, const asking& ask)>;
    void receive(std::string channel, letters heard);
    // Waits for letters under way; there are none any more.
    void refuse_letters();
    // An advisory lock, another one for each connection, that is held for as long as somebody listens to that channel.
    // 0: nobody does.
    std::int64_t listener() const noexcept { return listener_.load(); }
    // Runs it on that connection, soon, before the bell goes at the latest. When there is no connection, never.
    void run_soon(const statement& what, parameters with);

private:
    class line;

    // A NOTIFY is at least that long after the one before, and longer the more there is to tell.
    static constexpr duration shortest_gap = std::chrono::milliseconds{1};

    void start();
    void wake() const noexcept;
    void run(const std::stop_token& stop);
    void serve(line& open, const std::stop_token& stop);
    void send_all(line& open);
    std::vector<std::string> take_unsent();
    bool has_unsent() const;
    void run_errands(line& open);
    std::string own_channel();

    pool& pool_;
    job_watchers watchers_;
    mutable std::mutex mutex_;
    notify_turns turns_{shortest_gap};
    std::set<std::string, std::less<>> unsent_;
    std::vector<std::pair<const statement*, parameters>> errands_;
    int woken_ = -1; // an eventfd

    std::mutex letters_mutex_;
    std::string own_channel_; // empty: none
    letters letters_;
    std::atomic<std::int64_t> listener_ = 0;
    std::jthread thread_;
};

} // namespace holdfast::postgres
