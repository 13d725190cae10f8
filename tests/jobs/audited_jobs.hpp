// A job store that watches whose writes it takes, and hands jobs over to idle
// workers, as a server may. For a store in this process whose calls end at
// once, so that what is noted here is noted when it happens.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/job_store.hpp>
#include <holdfast/runtime.hpp>

#include "forwarded_jobs.hpp"

namespace holdfast::test {

class audited_jobs final : public forwarded_jobs {
public:
    audited_jobs(job_store& inner, const runtime& on) : forwarded_jobs(inner), on_(on) {}

    bool hands_over = false;

    // The first rule that was broken, or nothing.
    const std::string& wrong() const noexcept { return wrong_; }
    // Every job that was ever made.
    const std::vector<identifier>& known() const noexcept { return known_; }
    bool was_requeued(const identifier& id) const { return requeued_.contains(id); }
    // How the run with that token was settled; nothing when nobody's word was
    // taken.
    std::optional<settlement::kind> settled_as(const identifier& id, std::uint64_t token) const {
        const auto& all = records_.at(id).settled;
        const auto found = all.find(token);
        return found == all.end() ? std::nullopt : std::optional(found->second);
    }

    task<result<std::vector<enqueued>>> enqueue(std::vector<new_job> jobs, unit_of_work* in) override {
        std::set<std::string> queues;
        for (const new_job& each : jobs) queues.insert(each.queue);
        auto answers = co_await inner_.enqueue(std::move(jobs), in);
        if (!answers) co_return answers;
        for (const enqueued& each : *answers) {
            if (each.created != records_.try_emplace(each.id).second) note(each.id, "was made twice, or got lost");
            if (each.created) known_.push_back(each.id);
        }
        for (const std::string& each : queues) {
            auto handing = hand_one(each);
            co_await std::move(handing);
        }
        co_return answers;
    }

    task<result<std::vector<claimed_job>>> claim(claim_request request) override {
        const claim_request terms = request;
        auto claimed = co_await inner_.claim(std::move(request));
        if (!claimed) co_return claimed;
        for (const claimed_job& each : *claimed) took(each, terms.lease_for);
        if (hands_over && !terms.then_hand_to.empty() && claimed->size() < static_cast<std::size_t>(terms.limit))
            for (const std::string& each : terms.queues) idle_[each].insert_or_assign(terms.then_hand_to, terms);
        co_return claimed;
    }

    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) override {
        auto answers = co_await inner_.started(which);
        for (std::size_t i = 0; answers && i < which.size(); ++i) wrote("started", *which[i], answers->at(i));
        co_return answers;
    }
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) override {
        auto answers = co_await inner_.heartbeat(held, lease_for);
        for (std::size_t i = 0; answers && i < held.size(); ++i)
            if (record* of = wrote("heartbeat", *held[i], answers->at(i).answer))
                of->leased_until = on_.now() + lease_for;
        co_return answers;
    }
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override {
        auto answers = co_await inner_.progress(which);
        for (std::size_t i = 0; answers && i < which.size(); ++i) wrote("progress", *which[i].held, answers->at(i));
        co_return answers;
    }
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work* in) override {
        auto answers = co_await inner_.settle(which, in);
        for (std::size_t i = 0; answers && i < which.size(); ++i) {
            record* of = wrote("settlement", *which[i].held, answers->at(i).answer);
            if (of == nullptr) continue;
            of->open = false;
            of->settled.emplace(which[i].held->token(), which[i].how);
            if (is_final(answers->at(i).now)) ended(*parse_identifier(which[i].held->subject()), *of);
        }
        co_return answers;
    }

    task<result<recovery>> recover_stale(int limit) override {
        auto found = co_await inner_.recover_stale(limit);
        if (!found || found->total() == 0) co_return found;
        for (auto& [id, of] : records_) {
            if (!of.open) continue;
            auto asking = inner_.get(id);
            const auto looked = co_await std::move(asking);
            const auto* view = looked ? std::get_if<job_view>(&*looked) : nullptr;
            if (view == nullptr || view->state == job_state::processing) continue;
            of.open = false;
            if (on_.now() + std::chrono::microseconds{1} < of.leased_until)
                note(id, "was recovered before its lease had run out");
            if (is_final(view->state)) ended(id, of);
        }
        co_return found;
    }

    task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier> which) override {
        auto answers = co_await inner_.cancel(which);
        for (std::size_t i = 0; answers && i < which.size(); ++i)
            if (answers->at(i) == cancel_answer::cancelled || answers->at(i) == cancel_answer::requested)
                records_.at(which[i]).cancelled = true;
        co_return answers;
    }
    task<result<int>> requeue(std::vector<identifier> which) override {
        auto count = co_await inner_.requeue(which);
        for (const identifier& id : which) {
            auto asking = inner_.get(id);
            const auto looked = co_await std::move(asking);
            const auto* view = looked ? std::get_if<job_view>(&*looked) : nullptr;
            if (view == nullptr) continue;
            record& of = records_.at(id);
            if (view->generation == of.generation) continue;
            of.generation = view->generation;
            of.ended = of.cancelled = false;
            requeued_.insert(id);
        }
        co_return count;
    }

    std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                      std::function<void(claimed_job)> handed) override {
        const std::string address = "address " + std::to_string(++addresses_);
        attending_[address] = std::move(handed);
        return std::make_unique<attendant>(*this, address, inner_.watch(std::move(queues), std::move(hint)));
    }

private:
    // What whoever may write to a job has to show.
    struct record {
        std::uint64_t token = 0;
        bool open = false; // that run has not ended
        time_point leased_until{};
        int generation = 1;
        bool ended = false;     // this generation has
        bool cancelled = false; // somebody asked for it
        std::map<std::uint64_t, settlement::kind> settled;
    };

    struct attendant final : job_watch {
        attendant(audited_jobs& in, std::string at, std::unique_ptr<job_watch> of)
            : store(in), name(std::move(at)), hints(std::move(of)) {}
        ~attendant() override {
            store.attending_.erase(name);
            for (auto& [queue, idle] : store.idle_) idle.erase(name);
        }
        std::string address() const override { return store.hands_over ? name : std::string(); }
        audited_jobs& store;
        const std::string name;
        std::unique_ptr<job_watch> hints;
    };

    void note(const identifier& id, const std::string& what) {
        if (wrong_.empty()) wrong_ = "job " + to_text(id) + " " + what;
    }

    void took(const claimed_job& job, duration lease_for) {
        record& of = records_[job.id];
        if (of.open) note(job.id, "was claimed while somebody held it");
        if (job.lease.token() <= of.token) note(job.id, "was claimed with a token that is not new");
        if (of.cancelled) note(job.id, "was claimed after it was cancelled");
        if (of.ended) note(job.id, "was claimed after it had ended");
        of.token = job.lease.token();
        of.open = true;
        of.leased_until = on_.now() + lease_for;
    }

    // The record, if the write was taken. It is taken exactly from the one who
    // holds the job.
    record* wrote(const std::string& what, const job_lease& with, write_answer answer) {
        const auto id = *parse_identifier(with.subject());
        record& of = records_[id];
        const bool owner = of.open && of.token == with.token();
        const bool taken = answer == write_answer::done;
        if (taken && !owner)
            note(id, "took a " + what + " from run " + std::to_string(with.token()) + ", which had ended");
        if (!taken && owner)
            note(id, "refused a " + what + " from run " + std::to_string(with.token()) + ", its owner");
        return taken ? &of : nullptr;
    }

    void ended(const identifier& id, record& of) {
        if (std::exchange(of.ended, true)) note(id, "ended twice");
    }

    // In the same write as an enqueue.
    task<void> hand_one(std::string queue) {
        auto& waiting = idle_[queue];
        if (waiting.empty()) co_return;
        const auto [address, terms] = *waiting.begin();
        auto claiming = inner_.claim({{queue}, 1, terms.lease_for, terms.worker, {}});
        auto claimed = co_await std::move(claiming);
        if (!claimed || claimed->empty()) co_return;
        took(claimed->front(), terms.lease_for);
        waiting.erase(address);
        attending_.at(address)(std::move(claimed->front()));
    }

    const runtime& on_;
    std::map<identifier, record> records_;
    std::vector<identifier> known_;
    std::set<identifier> requeued_;
    std::string wrong_;
    int addresses_ = 0;
    std::map<std::string, std::function<void(claimed_job)>> attending_; // by address
    std::map<std::string, std::map<std::string, claim_request>> idle_;  // by queue, then address: on these terms
};

} // namespace holdfast::test
