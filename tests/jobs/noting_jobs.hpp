// The store of a worker process that tells on itself: every write that the store refuses is noted, as "late <job> <token>
// <process>" in the file "refused.<call>". While the file "quiet.<process>" is there, heartbeats wait; that they do is
// noted in "quiet".
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <holdfast/runtime.hpp>
#include <holdfast/sleep.hpp>

#include "forwarded_jobs.hpp"
#include "notes.hpp"

namespace holdfast::test {

class noting_jobs final : public forwarded_jobs {
public:
    noting_jobs(job_store& inner, runtime& on) : forwarded_jobs(inner), on_(on) {}

    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) override {
        auto answers = co_await inner_.started(which);
        for (std::size_t i = 0; answers && i < which.size(); ++i) wrote("started", *which[i], answers->at(i));
        co_return answers;
    }
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) override {
        const std::string quiet = "quiet." + std::to_string(::getpid());
        if (exists(quiet)) note("quiet", "process " + std::to_string(::getpid()));
        while (exists(quiet)) co_await sleep_for(on_, std::chrono::milliseconds{5});
        auto answers = co_await inner_.heartbeat(held, lease_for);
        for (std::size_t i = 0; answers && i < held.size(); ++i) wrote("heartbeat", *held[i], answers->at(i).answer);
        co_return answers;
    }
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work* in) override {
        auto answers = co_await inner_.settle(which, in);
        for (std::size_t i = 0; answers && i < which.size(); ++i)
            wrote("settle", *which[i].held, answers->at(i).answer);
        co_return answers;
    }
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override {
        auto answers = co_await inner_.progress(which);
        for (std::size_t i = 0; answers && i < which.size(); ++i) wrote("progress", *which[i].held, answers->at(i));
        co_return answers;
    }

private:
    static void wrote(const std::string& call, const job_lease& with, write_answer answer) {
        if (answer == write_answer::done) return;
        note("refused." + call,
             "late " + with.subject() + " " + std::to_string(with.token()) + " " + std::to_string(::getpid()));
    }

    runtime& on_;
};

} // namespace holdfast::test
