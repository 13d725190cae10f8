// What stands before a handler, a mark in the store and the probe's answer, and whose time that is.
#include <functional>

#include "catch.hpp"
#include "faulty_jobs.hpp"
#include "worker_lab.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using test::store_call;
using test::worker_lab;

namespace {

// A kind whose probe may take its time.
class asked_job final : public job_type {
public:
    using prober = std::function<task<happened>(job_context&)>;
    asked_job(job_options how, int& ran, prober ask) : how_(how), ran_(ran), ask_(std::move(ask)) {}
    const job_options& options() const noexcept override { return how_; }
    holdfast::restart restart() const noexcept override { return restart::probe; }
    task<result<void>> run(payload, job_context& context) override {
        ++ran_;
        return test::slept(context, 1s);
    }
    task<happened> probe(payload, job_context& context) override { return ask_(context); }

private:
    job_options how_;
    int& ran_;
    prober ask_;
};

struct probe_lab : worker_lab {
    probe_lab(job_options how, asked_job::prober ask) {
        how.name = "work";
        kinds.add(std::make_unique<asked_job>(how, ran, std::move(ask))).value();
        id = enqueue();
        get(store().claim({.queues = {"default"}, .limit = 1, .lease_for = 1s, .worker = "dead"}));
        on.advance(2s);
        get(store().recover_stale(10));
    }
    int ran = 0;
    identifier id;
};

task<happened> after(job_context& c, duration d, happened answer) {
    co_await sleep_for(c.runtime(), d);
    co_return answer;
}

} // namespace

TEST_CASE("the time of an attempt that may not restart begins when the store has taken its mark") {
    worker_lab lab;
    test::faulty_jobs store(*lab.held->jobs());
    bool down = true;
    store.before = [&](store_call which) -> std::optional<error> {
        if (which == store_call::started && down) return error{errc::unavailable, "away", std::nullopt};
        return std::nullopt;
    };
    lab.over = &store;
    lab.add({.name = "work", .timeout = 3s, .hard_deadline = 5s},
            [](payload, job_context& c) { return test::slept(c, 2s); });
    auto once_only = lab.job();
    once_only.may_restart = false;
    const auto id = lab.enqueue(std::move(once_only));
    lab.start();
    lab.on.advance(12s);
    CHECK(lab.state(id) == job_state::processing);
    down = false;
    lab.on.advance(10s);
    CHECK(lab.state(id) == job_state::succeeded);
    lab.stop(); // while the store is there
}

TEST_CASE("a handler has all its time however long its probe took, and a token that nobody fired") {
    probe_lab lab({.timeout = 2s}, [](job_context& c) { return after(c, 10s, happened::no); });
    lab.start();
    lab.on.advance(9s);
    CHECK(lab.ran == 0);
    lab.on.advance(5s);
    CHECK(lab.ran == 1);
    CHECK(lab.state(lab.id) == job_state::succeeded);
    CHECK(lab.look(lab.id).attempts == 1);
}

TEST_CASE("a probe is asked to stop at the timeout, and given up at the hard deadline: nobody knows then") {
    bool asked_to_stop = false;
    probe_lab lab({.timeout = 2s, .hard_deadline = 5s}, [&](job_context& c) -> task<happened> {
        auto waiting = sleep_for(c.runtime(), 10s);
        co_await std::move(waiting);
        asked_to_stop = c.stop_token().stop_requested();
        co_return happened::no;
    });
    lab.start();
    lab.on.advance(6s);
    CHECK(lab.state(lab.id) == job_state::indeterminate);
    CHECK(lab.look(lab.id).last_error.message == "the probe did not end by the hard deadline");
    CHECK(lab.log.count("is stuck: its probe runs past its hard deadline") == 1);
    lab.on.advance(20s);
    CHECK(asked_to_stop);
    CHECK(lab.ran == 0);
    CHECK(lab.worker->snapshot().running.empty());
}

TEST_CASE("a probe that gets no thread is asked again later, and nothing is burnt") {
    int asked = 0;
    probe_lab lab({}, [&](job_context&) -> task<happened> {
        if (++asked < 3) throw failed({errc::overloaded, "no room", std::nullopt});
        co_return happened::yes;
    });
    lab.start();
    lab.on.advance(30s);
    CHECK(asked == 3);
    CHECK(lab.ran == 0);
    CHECK(lab.state(lab.id) == job_state::succeeded);
    CHECK(lab.log.count("no room; give the runtime more blocking_threads") == 1);
}

TEST_CASE("a job that its probe cannot decode is a dead letter, and one that was cancelled meanwhile is cancelled") {
    probe_lab broken({}, [](job_context&) -> task<happened> {
        throw undecodable_job("items[3]: expected a number");
        co_return happened::no;
    });
    broken.start();
    broken.on.advance(1s);
    CHECK(broken.state(broken.id) == job_state::dead_letter);

    probe_lab called_off({}, [](job_context& c) -> task<happened> {
        auto waiting = sleep_for(c.runtime(), 1min, c.stop_token());
        co_await std::move(waiting);
        throw operation_cancelled();
    });
    called_off.start();
    called_off.on.advance(1s);
    called_off.get(called_off.store().cancel({called_off.id}));
    called_off.on.advance(30s);
    CHECK(called_off.state(called_off.id) == job_state::cancelled);
}
