// Calls of consumers that take a unit of work: what they write and the mark that the event was received are one commit.
#include "event_worker_state.hpp"

namespace holdfast::detail {

// A unit with the mark of the inbox in it.
struct event_worker_state::marked_unit final : unit_opener {
    marked_unit(self worker, run of) : s(std::move(worker)), r(std::move(of)) {}

    task<result<unit_of_work*>> open() override {
        auto beginning = s->with.inbox->begin();
        auto begun = co_await std::move(beginning);
        if (!begun) co_return std::unexpected(problem.emplace(std::move(begun.error())));
        if (r->kind->options.inbox) {
            auto marking =
                s->inbox->receive(r->inbox_name(), r->what.message.id, r->kind->options.remember, begun->get());
            const auto first = co_await std::move(marking);
            if (!first || !*first) {
                auto taking_back = (*begun)->rollback();
                co_await std::move(taking_back);
                if (!first && first.error().code != errc::duplicate)
                    co_return std::unexpected(problem.emplace(first.error()));
                r->duplicate = true;
                co_return nullptr;
            }
        }
        s->inbox_outage.answered(s->who(), "begin a unit of work");
        unit = std::move(*begun);
        const std::lock_guard lock(s->mutex);
        ++r->calls;
        co_return unit.get();
    }

    const self s;
    const run r;
    std::unique_ptr<unit_of_work> unit;
    std::optional<error> problem; // why there is none
};

// That the store is away is not the message's fault: waits for it, without a thread.
task<result<void>> event_worker_state::call_in_unit(self s, run r, event_context& context) {
    marked_unit own(s, r);
    for (int n = 1;; ++n) {
        result<void> ended;
        std::exception_ptr thrown;
        try {
            auto running = r->kind->consumer.run(r->what.message, context, &own);
            ended = co_await std::move(running);
        } catch (...) {
            thrown = std::current_exception();
        }
        if (own.unit != nullptr && thrown) {
            auto taking_back = own.unit->rollback();
            co_await std::move(taking_back);
        }
        if (thrown) std::rethrow_exception(thrown);
        if (own.unit != nullptr) {
            auto ending = end_unit(s, r, std::move(own.unit), std::move(ended));
            co_return co_await std::move(ending);
        }
        if (!own.problem) co_return ended; // its consumer has had it
        s->inbox_outage.failed(s->who(), "begin a unit of work", *own.problem);
        if (!is_passing(own.problem->code)) co_return std::unexpected(std::move(*own.problem));
        if (r->lost || r->stopping || s->is_stopping()) {
            r->stopping = true;
            co_return std::unexpected(std::move(*own.problem));
        }
        own.problem.reset();
        {
            const std::lock_guard lock(s->mutex);
            r->begun = false; // nothing has happened
        }
        auto backing_off = s->back_off(n);
        co_await std::move(backing_off);
    }
}

task<result<void>> event_worker_state::end_unit(self s, run r, std::unique_ptr<unit_of_work> unit, result<void> ended) {
    if (!ended || r->lost) {
        auto taking_back = unit->rollback();
        co_await std::move(taking_back);
        co_return ended;
    }
    auto committing = unit->commit();
    auto committed = co_await std::move(committing);
    if (committed) co_return committed;
    const errc code = committed.error().code;
    if (!r->kind->options.inbox || (code != errc::unknown_outcome && code != errc::duplicate)) co_return committed;
    // The mark in the inbox tells: it went with the rest, or somebody else's did.
    auto asking = has_been_received(s, r);
    const auto received = co_await std::move(asking);
    if (!received || !*received) co_return committed;
    r->duplicate = code == errc::duplicate;
    co_return result<void>{};
}

task<result<bool>> event_worker_state::has_been_received(self s, run r) {
    for (int n = 1;; ++n) {
        auto asking = s->inbox->received(r->inbox_name(), {r->what.message.id});
        const auto answer = co_await std::move(asking);
        if (answer) {
            s->inbox_outage.answered(s->who(), "ask the inbox");
            co_return answer->front();
        }
        s->inbox_outage.failed(s->who(), "ask the inbox", answer.error());
        if (r->lost || r->stopping || s->is_past_giving_up()) {
            r->stopping = true; // whoever gets it next asks first
            co_return std::unexpected(answer.error());
        }
        auto backing_off = s->back_off(n);
        co_await std::move(backing_off);
    }
}

} // namespace holdfast::detail
