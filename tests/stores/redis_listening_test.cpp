// Who reads what the server tells: the runtime, if it can and has the time, or the listener's own thread.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "stores/redis_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::redis::desk;
using test::redis::soon;
using test::redis::subscriber;

namespace {

// One that watches no descriptors.
class unwatching_runtime final : public runtime {
public:
    std::string_view name() const noexcept override { return on_.name(); }
    time_point now() const noexcept override { return on_.now(); }
    bool post(work& w) noexcept override { return on_.post(w); }
    bool post_blocking(work& w) noexcept override { return on_.post_blocking(w); }
    bool arm(timer& t, time_point due) noexcept override { return on_.arm(t, due); }
    bool cancel(timer& t) noexcept override { return on_.cancel(t); }
    void stop() noexcept override { on_.stop(); }
    bool stopped() const noexcept override { return on_.stopped(); }

private:
    asio_runtime on_{asio_options{}};
};

// A store of the desk's, on a runtime of one's own, with a worker that listens and waits.
struct listener {
    listener(runtime& runs, const desk& beside, const std::string& timeout = "2s") : on(runs) {
        auto with = beside.with;
        with.emplace_back("timeout", timeout);
        kept = test::redis::open(on, with);
        REQUIRE(sync_wait(on, kept->prepare()));
        watch = kept->jobs()->attend(
            {"default"}, [this] { ++hints; },
            [this](const claimed_job& job) {
                const std::lock_guard lock(mutex);
                got.push_back(job.id);
            });
        REQUIRE(soon([&] { return hints > 0; }));
        wait();
    }
    void wait() { REQUIRE(sync_wait(on, kept->jobs()->claim({{"default"}, 10, 1min, "idle", watch->address()}))); }
    bool has(const identifier& id) {
        const std::lock_guard lock(mutex);
        return std::ranges::find(got, id) != got.end();
    }

    runtime& on;
    std::unique_ptr<store> kept;
    std::mutex mutex;
    std::vector<identifier> got;
    std::atomic<int> hints = 0;
    std::unique_ptr<job_watch> watch;
};

// Work that has a runtime thread until it is let go.
struct holding : work {
    explicit holding(runtime& on) {
        run = [](work& w, wake) noexcept {
            auto& self = static_cast<holding&>(w);
            self.begun = true;
            self.over.wait(false);
            self.ended = true;
            self.ended.notify_all();
        };
        REQUIRE(on.post(*this));
        REQUIRE(soon([&] { return begun.load(); }));
    }
    ~holding() {
        over = true;
        over.notify_all();
        ended.wait(false);
    }
    std::atomic<bool> begun = false;
    std::atomic<bool> over = false;
    std::atomic<bool> ended = false;
};

} // namespace

TEST_CASE("redis: on a runtime that watches no descriptors hints and jobs come by the listener's own thread") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk other(server.url());
    unwatching_runtime on;
    listener l(on, other);
    const identifier first = other.add();
    CHECK(soon([&] { return l.has(first); }));
    const int before = l.hints;
    const identifier second = other.add(); // it has not said again that it waits
    CHECK(soon([&] { return l.hints > before; }));
    CHECK(!l.has(second));
    const std::string connection = subscriber(server);
    CHECK(server.tell("CLIENT KILL " + connection.substr(0, 2) + " " + connection.substr(3)) == ":1");
    CHECK(soon([&] { return l.hints > before + 1; })); // once it listens again
    CHECK(other.claim_one().id == second);
    l.wait();
    const identifier third = other.add();
    CHECK(soon([&] { return l.has(third); }));
    l.watch.reset();
    l.kept.reset();
    CHECK(soon([&] { return subscriber(server).empty(); }));
}

TEST_CASE("redis: what comes while the runtime has no thread free is read all the same, and the connection is kept") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk other(server.url());
    asio_runtime on({.threads = 1});
    listener l(on, other, "100ms");
    const std::string connection = subscriber(server);
    {
        const holding thread(on);
        const identifier id = other.add();
        CHECK(soon([&] { return l.has(id); }));
        const int before = l.hints;
        other.add();
        CHECK(soon([&] { return l.hints > before; }));
        std::this_thread::sleep_for(1s); // ten times what a silent connection gets
        CHECK(subscriber(server) == connection);
    }
    CHECK(other.claim(10).size() == 1);
    l.wait();
    const identifier later = other.add();
    CHECK(soon([&] { return l.has(later); }));
    CHECK(subscriber(server) == connection);
}

TEST_CASE("redis: more hints than are read at once all come") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk other(server.url());
    asio_runtime on({.threads = 1});
    listener l(on, other, "5s");
    const std::string space = "{" + other.space() + "}";
    {
        const holding thread(on);
        // As many as are read at once for a queue that nobody watches, then one for ours: all wait in the socket.
        for (int i = 0; i < 1'000; ++i) server.tell("PUBLISH " + space + ":hints elsewhere");
        server.tell("PUBLISH " + space + ":hints default");
    }
    const int before = 1; // that of the subscription
    CHECK(soon([&] { return l.hints > before; }));
}

TEST_CASE("redis: a store goes while its runtime is at reading, or has stopped") {
    NEEDS_REDIS();
    harness::redis_server server;
    desk other(server.url());
    std::atomic<bool> stop = false;
    std::thread adds([&] {
        while (!stop) other.add();
    });
    for (int i = 0; i < 20; ++i) {
        asio_runtime on;
        listener l(on, other);
        std::this_thread::sleep_for(1ms * (i % 5));
        if (i % 2 == 0) on.stop();
        l.watch.reset();
        l.kept.reset();
    }
    stop = true;
    adds.join();
    CHECK(soon([&] { return server.lines("PUBSUB CHANNELS").empty(); }));
}
