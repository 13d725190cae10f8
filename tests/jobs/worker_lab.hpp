// A worker on the simulated runtime with the memory store, and what tests do with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/job_worker.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>

#include "kept_log.hpp"
#include "memory_store.hpp"

namespace holdfast::test {

// A kind whose handler is any function, made at run time.
class any_job final : public job_type {
public:
    using handler = std::function<task<result<void>>(payload, job_context&)>;
    using prober = std::function<happened(const payload&)>;
    any_job(job_options how, handler run, prober ask = {}) : how_(how), run_(std::move(run)), ask_(std::move(ask)) {}
    const job_options& options() const noexcept override { return how_; }
    holdfast::restart restart() const noexcept override { return how_.restart; }
    task<result<void>> run(payload what, job_context& context) override { return run_(std::move(what), context); }
    task<happened> probe(payload what, job_context&) override { co_return ask_(what); }

private:
    job_options how_;
    handler run_;
    prober ask_;
};

inline task<result<void>> ended_well() {
    co_return result<void>{};
}
inline task<result<void>> slept(job_context& c, duration d) {
    co_await sleep_for(c.runtime(), d, c.stop_token());
    if (c.stop_token().stop_requested()) throw operation_cancelled();
    co_return result<void>{};
}
// Does not look at its token.
inline task<result<void>> slept_deaf(job_context& c, duration d) {
    co_await sleep_for(c.runtime(), d);
    co_return result<void>{};
}

struct worker_lab {
    explicit worker_lab(std::uint64_t order = 0) : on(order), made(on, 7), held(memory::make_store({}, &on)) {
        sync_wait(on, held->prepare()).value();
    }
    ~worker_lab() { stop(); }

    job_store& store() { return over != nullptr ? *over : *held->jobs(); }
    void add(job_options how, any_job::handler run, any_job::prober ask = {}) {
        auto added = kinds.add(std::make_unique<any_job>(how, std::move(run), std::move(ask)));
        if (!added) throw failed(added.error());
    }
    job_worker& start(worker_options how = {}) {
        if (how.name.empty()) how.name = "lab";
        worker.emplace(
            worker_parts{
                .on = on, .store = store(), .kinds = kinds, .log = log, .policies = &made.policies(), .rules = rules},
            std::move(how), 11);
        if (auto started = worker->start(); !started) throw failed(started.error());
        return *worker;
    }
    void stop(std::optional<duration> grace = std::nullopt) {
        if (!worker) return;
        sync_wait(on, worker->stop(grace));
        worker.reset();
    }
    template <class T>
    T get(task<result<T>> call) {
        auto answer = sync_wait(on, std::move(call));
        if (!answer) throw failed(answer.error());
        return std::move(*answer);
    }

    new_job job(std::string type = "work", std::string body = {}) {
        new_job made_job;
        made_job.id = ids.next(std::chrono::system_clock::time_point(std::chrono::milliseconds(++count)));
        made_job.what = {std::move(type), 1, "text/plain", std::move(body)};
        return made_job;
    }
    identifier enqueue(new_job one) {
        std::vector<new_job> batch;
        batch.push_back(std::move(one));
        return get(held->jobs()->enqueue(std::move(batch))).front().id;
    }
    identifier enqueue(std::string type = "work", std::string body = {}) {
        return enqueue(job(std::move(type), std::move(body)));
    }
    void enqueue_many(int n, const std::string& type = "work", const std::string& queue = "default") {
        std::vector<new_job> batch;
        for (int i = 0; i < n; ++i) {
            batch.push_back(job(type));
            batch.back().queue = queue;
        }
        get(held->jobs()->enqueue(std::move(batch)));
    }
    job_view look(identifier id) { return std::get<job_view>(get(held->jobs()->get(id))); }
    job_state state(identifier id) { return look(id).state; }
    std::uint64_t count_of(job_state s) {
        std::uint64_t total = 0;
        for (const job_count& each : get(held->jobs()->counts()))
            if (each.state == s) total += each.count;
        return total;
    }

    simulated_runtime on;
    engine made;
    kept_log log;
    job_registry kinds;
    std::unique_ptr<holdfast::store> held;
    job_store* over = nullptr; // what the worker sees in its place
    identifier_source ids{5};
    int count = 0;
    const exception_policy* rules = nullptr; // of the host
    std::optional<job_worker> worker;
};

} // namespace holdfast::test
