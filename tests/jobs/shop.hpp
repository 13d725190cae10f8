// A store, a folder for notes, and processes that work on both.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "harness/child_process.hpp"
#include "harness/postgres_server.hpp"
#include "harness/redis_server.hpp"
#include "harness/temporary_folder.hpp"
#include "notes.hpp"
#include "stores/support.hpp"

namespace holdfast::test {

using namespace std::chrono_literals;

struct shop : store_desk {
    shop(std::string plugin_name, text_settings how) : plugin(std::move(plugin_name)) {
        with = std::move(how);
        if (plugin == "sqlite") with.emplace_back("file", (folder / "store.db").string());
        else with.emplace_back("namespace", fresh_namespace());
        kept = open_store(plugin, on, with);
        await(kept->prepare());
    }
    ~shop() {
        (void)sync_wait(on, kept->destroy());
        kept.reset(); // before its folder goes
    }

    // In the folder; what it prints is in "output".
    harness::child_process program(std::vector<std::string> arguments) const {
        harness::command what;
        what.arguments = std::move(arguments);
        what.folder = folder.path();
        what.output = folder / "output";
        return harness::child_process(what);
    }
    harness::child_process worker(int concurrency, std::chrono::milliseconds lease_for = 1500ms) const {
        return program(worker_command(concurrency, lease_for));
    }
    // One whose clock is wrong by that much; see wrong_clock.cpp.
    harness::child_process worker_at(std::chrono::seconds shift) const {
        auto command = worker_command(4, 1500ms);
        command.insert(command.begin(), {"/usr/bin/env", "LD_PRELOAD=" HOLDFAST_WRONG_CLOCK,
                                         "HOLDFAST_CLOCK_SHIFT=" + std::to_string(shift.count())});
        return program(std::move(command));
    }
    identifier enqueue(const std::string& kind, int priority = 0, bool may_restart = true, int max_crashes = 3) {
        new_job made = job();
        made.what.type = kind;
        made.priority = priority;
        made.may_restart = may_restart;
        made.max_crashes = max_crashes;
        const identifier id = made.id;
        await(jobs().enqueue({std::move(made)}));
        return id;
    }
    std::vector<identifier> enqueue_many(int n, const std::string& kind, int priority = 0) {
        std::vector<new_job> batch;
        std::vector<identifier> made;
        for (int i = 0; i < n; ++i) {
            batch.push_back(job());
            batch.back().what.type = kind;
            batch.back().priority = priority;
            made.push_back(batch.back().id);
        }
        await(jobs().enqueue(std::move(batch)));
        return made;
    }
    std::uint64_t count_of(job_state s) {
        std::uint64_t total = 0;
        for (const job_count& each : await(jobs().counts()))
            if (each.state == s) total += each.count;
        return total;
    }
    // How often each job is noted in that file.
    std::map<std::string, int> noted(const std::string& file) const {
        std::map<std::string, int> times;
        for (const std::string& each : notes_in(folder / file)) {
            std::istringstream in(each);
            std::string kind;
            std::string id;
            in >> kind >> id;
            ++times[id];
        }
        return times;
    }
    int noted(const std::string& file, const identifier& id) const {
        auto all = noted(file);
        return all[to_text(id)];
    }
    void let_go(const harness::child_process& which) const { note(folder / ("go." + std::to_string(which.id())), ""); }
    // It sends no heartbeat until it may again; see noting_jobs.hpp.
    void silence(const harness::child_process& which) const {
        note(folder / ("quiet." + std::to_string(which.id())), "");
        until("it is silent", [&] { return !notes_in(folder / "quiet").empty(); });
    }
    void let_beat(const harness::child_process& which) const {
        std::filesystem::remove(folder / ("quiet." + std::to_string(which.id())));
    }
    // Whether the store refused this call of that process, about the first run of the job.
    bool refused(const std::string& call, const identifier& id, const harness::child_process& of) {
        const std::string line = "late " + to_text(id) + " " + std::to_string(view(id).history.front().token) + " " +
                                 std::to_string(of.id());
        const auto all = notes_in(folder / ("refused." + call));
        return std::ranges::find(all, line) != all.end();
    }
    // Fails the test when it takes too long.
    void until(const std::string& what, const std::function<bool()>& met) const {
        for (const auto end = std::chrono::steady_clock::now() + 30s; !met();) {
            if (std::chrono::steady_clock::now() > end) {
                for (const auto* file : {"failed", "output"})
                    for (const auto& each : notes_in(folder / file)) UNSCOPED_INFO(each);
                FAIL(plugin << ": waited in vain until " << what);
            }
            std::this_thread::sleep_for(5ms);
        }
    }

    std::vector<std::string> worker_command(int concurrency, std::chrono::milliseconds lease_for) const {
        std::vector<std::string> command = {HOLDFAST_WORKER_PROGRAM, plugin, std::to_string(lease_for.count()),
                                            std::to_string(concurrency)};
        for (const auto& [key, value] : with) command.push_back(key + "=" + value);
        return command;
    }

    const std::string plugin;
    harness::temporary_folder folder{"hfshop"};
};

} // namespace holdfast::test
