// A job store that fails, or takes its time, on demand: before a call reaches
// the store, or after it was applied.
#pragma once

#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/job_store.hpp>
#include <holdfast/sleep.hpp>

#include "forwarded_jobs.hpp"

namespace holdfast::test {

enum class store_call : unsigned char {
    enqueue,
    claim,
    started,
    heartbeat,
    settle,
    progress,
    recover_stale,
    next_due,
    handed, // no call: a job that the store has claimed for a worker, on its way
            // there
    cancel,
    requeue,
    get,
    other
};
inline constexpr std::string_view store_call_names[] = {"enqueue",  "claim",         "started",  "heartbeat", "settle",
                                                        "progress", "recover_stale", "next_due", "handed",    "cancel",
                                                        "requeue",  "get",           "other"};

class faulty_jobs final : public forwarded_jobs {
public:
    using forwarded_jobs::forwarded_jobs;

    // Asked before each call, and after it was applied; an error is answered in
    // its place.
    std::function<std::optional<error>(store_call)> before = [](store_call) { return std::nullopt; };
    std::function<std::optional<error>(store_call)> after = [](store_call) { return std::nullopt; };
    // In place of those and of lag: makes the call, by awaiting it, or does not.
    // An error is answered in its place.
    std::function<task<std::optional<error>>(store_call, task<void>)> around{};
    // What the store behind this hands over, and the worker that it is for.
    std::function<void(claimed_job, std::function<void(claimed_job)>)> on_handed =
        [](claimed_job job, const std::function<void(claimed_job)>& to) { to(std::move(job)); };
    // Asked with the batch of each settle call.
    std::function<std::optional<error>(std::span<const settlement>)> on_settle = [](auto) { return std::nullopt; };
    // How long a call takes until it is applied, and until its answer comes; on
    // that runtime.
    std::function<duration()> lag = [] { return duration::zero(); };
    runtime* on = nullptr;
    bool gives_hints = true;
    bool hands_over = false; // then by this, what was claimed for the worker
    std::function<void(claimed_job)> hand{};
    std::vector<std::string> idle; // the queues of the latest claim that said where to hand to
    std::atomic<int> calls[std::size(store_call_names)] = {};

    int count(store_call which) const { return calls[static_cast<int>(which)]; }

    task<result<std::vector<enqueued>>> enqueue(std::vector<new_job> jobs, unit_of_work* in) override {
        return pass(store_call::enqueue, inner_.enqueue(std::move(jobs), in));
    }
    task<result<std::vector<claimed_job>>> claim(claim_request request) override {
        if (!request.then_hand_to.empty()) idle = request.queues;
        return pass(store_call::claim, inner_.claim(std::move(request)));
    }
    task<result<std::vector<write_answer>>> started(std::span<const job_lease* const> which) override {
        return pass(store_call::started, inner_.started(which));
    }
    task<result<std::vector<beat>>> heartbeat(std::span<const job_lease* const> held, duration lease_for) override {
        return pass(store_call::heartbeat, inner_.heartbeat(held, lease_for));
    }
    task<result<std::vector<settled>>> settle(std::span<const settlement> which, unit_of_work* in) override {
        if (auto refused = on_settle(which)) return refuse<std::vector<settled>>(std::move(*refused));
        return pass(store_call::settle, inner_.settle(which, in));
    }
    task<result<std::vector<write_answer>>> progress(std::span<const progress_report> which) override {
        return pass(store_call::progress, inner_.progress(which));
    }
    task<result<recovery>> recover_stale(int limit) override {
        return pass(store_call::recover_stale, inner_.recover_stale(limit));
    }
    task<result<std::optional<duration>>> next_due(std::vector<std::string> queues) override {
        return pass(store_call::next_due, inner_.next_due(std::move(queues)));
    }
    std::unique_ptr<job_watch> watch(std::vector<std::string> queues, std::function<void()> hint) override {
        return gives_hints ? inner_.watch(std::move(queues), std::move(hint)) : nullptr;
    }
    std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                      std::function<void(claimed_job)> handed) override {
        if (hands_over) {
            hand = std::move(handed);
            return std::make_unique<addressed>(watch(std::move(queues), std::move(hint)));
        }
        if (!gives_hints) return nullptr;
        return inner_.attend(std::move(queues), std::move(hint),
                             [this, to = std::move(handed)](claimed_job job) { on_handed(std::move(job), to); });
    }
    task<result<std::vector<cancel_answer>>> cancel(std::vector<identifier> which) override {
        return pass(store_call::cancel, inner_.cancel(std::move(which)));
    }
    task<result<int>> requeue(std::vector<identifier> which) override {
        return pass(store_call::requeue, inner_.requeue(std::move(which)));
    }
    task<result<int>> purge(job_state state, duration older_than, int limit) override {
        return pass(store_call::other, inner_.purge(state, older_than, limit));
    }
    task<result<int>> discard(std::vector<identifier> which) override {
        return pass(store_call::other, inner_.discard(std::move(which)));
    }
    task<result<void>> pause(std::string queue) override {
        return pass(store_call::other, inner_.pause(std::move(queue)));
    }
    task<result<void>> resume(std::string queue) override {
        return pass(store_call::other, inner_.resume(std::move(queue)));
    }
    task<result<std::vector<queue_view>>> queues() override { return pass(store_call::other, inner_.queues()); }
    task<result<job_lookup>> get(identifier id) override { return pass(store_call::get, inner_.get(id)); }
    task<result<job_page>> list(job_filter filter, int limit, std::string cursor) override {
        return pass(store_call::other, inner_.list(std::move(filter), limit, std::move(cursor)));
    }
    task<result<std::vector<job_count>>> counts() override { return pass(store_call::other, inner_.counts()); }

private:
    struct addressed final : job_watch {
        explicit addressed(std::unique_ptr<job_watch> of) : hints(std::move(of)) {}
        std::string address() const override { return "here"; }
        std::unique_ptr<job_watch> hints;
    };

    template <class T>
    task<result<T>> pass(store_call which, task<result<T>> call) {
        ++calls[static_cast<int>(which)];
        if (around) {
            result<T> answer = fail(errc::internal, "the call was not made");
            auto making = around(which, make(std::move(call), answer));
            if (auto refused = co_await std::move(making)) co_return std::unexpected(std::move(*refused));
            co_return answer;
        }
        if (auto refused = before(which)) co_return std::unexpected(std::move(*refused));
        if (on != nullptr) co_await sleep_for(*on, lag());
        auto answer = co_await std::move(call);
        if (on != nullptr) co_await sleep_for(*on, lag());
        if (auto refused = after(which)) co_return std::unexpected(std::move(*refused));
        co_return answer;
    }
    template <class T>
    static task<void> make(task<result<T>> call, result<T>& answer) {
        answer = co_await std::move(call);
    }
    template <class T>
    static task<result<T>> refuse(error why) {
        co_return std::unexpected(std::move(why));
    }
};

} // namespace holdfast::test
