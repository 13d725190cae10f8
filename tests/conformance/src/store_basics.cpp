// What holds for every store, whatever it offers.
#include "held_threads.hpp"
#include "store_lab.hpp"

namespace holdfast::conformance {

namespace {

new_job any_job(store_lab& in) {
    return {.id = in.next_id(), .what = {.type = "t", .body = "{}"}, .when = {}};
}

// Leaves a mark in the first facet there is, and looks for it.
class mark {
public:
    explicit mark(store_lab& in) : in_(in), job_(any_job(in)) {
        if (auto* jobs = in.store().jobs()) {
            in.ok(jobs->enqueue({job_}), "enqueue");
        } else if (auto* outbox = in.store().outbox()) {
            in.ok(outbox->append({{in.next_id(), "topic", "", {.type = "t", .body = "{}"}, {}}}), "append");
        } else if (auto* idempotency = in.store().idempotency()) {
            in.ok(idempotency->try_claim("mark", 1h), "try_claim");
        } else {
            held_ = in.ok(in.locks().try_acquire("mark", 1h), "try_acquire");
        }
    }
    // Asking a lock or a key takes it, so ask once.
    bool is_in(holdfast::store& where) {
        if (auto* jobs = where.jobs()) return std::holds_alternative<job_view>(in_.ok(jobs->get(job_.id), "get"));
        if (auto* outbox = where.outbox()) return in_.ok(outbox->unsent(), "unsent") == 1;
        if (auto* idempotency = where.idempotency()) return !in_.ok(idempotency->try_claim("mark", 1h), "try_claim");
        return !in_.ok(where.locks()->try_acquire("mark", 1h), "try_acquire").has_value();
    }

private:
    store_lab& in_;
    new_job job_;
    std::optional<lock_lease> held_;
};

void prepare_is_repeatable(store_lab& in) {
    mark made(in);
    in.ok(in.store().prepare(), "prepare() again");
    std::vector<task<result<void>>> calls;
    for (int i = 0; i < 8; ++i) calls.push_back(in.store().prepare());
    for (auto& each : in.at_once(std::move(calls))) in.value_of(std::move(each), "prepare() at the same time");
    check(made.is_in(in.store()), "what was written is there after prepare()");
}

void instances_prepare_together(store_lab& in) {
    std::vector<task<result<void>>> calls;
    holdfast::store& other = in.other();
    in.ok(in.store().destroy(), "destroy()");
    for (int i = 0; i < 8; ++i) calls.push_back((i % 2 == 0 ? in.store() : other).prepare());
    for (auto& each : in.at_once(std::move(calls))) in.value_of(std::move(each), "prepare() from two instances");
    mark made(in);
    check(made.is_in(other), "the other instance sees what was written");
}

void clock_goes_on(store_lab& in) {
    const store_time first = in.now();
    in.pass(5ms);
    const store_time later = in.now();
    check(later >= first + 5ms, "the store's clock goes on");
    for (int i = 0; i < 20; ++i) {
        const store_time before = in.now();
        check(in.now() >= before, "the store's clock does not go back");
    }
}

void says_what_it_is(store_lab& in) {
    check(!in.store().name().empty(), "a store has a name");
    const store_capabilities can = in.store().capabilities();
    check(!can.loses.empty(), "a store says in a sentence what acknowledged work it can lose, or that it loses none");
    const bool offers = in.store().jobs() != nullptr || in.store().locks() != nullptr ||
                        in.store().idempotency() != nullptr || in.store().outbox() != nullptr;
    check(offers, "a store offers at least one facet");
    check(in.store().jobs() == in.store().jobs(), "a facet is always the same object");
}

void absent_is_unsupported(store_lab& in) {
    const store_capabilities can = in.store().capabilities();
    if (!can.units_of_work) in.refused(in.store().begin(), {errc::unsupported}, "begin() without units of work");
    if (!can.joins_transactions) in.refused(in.store().join({}), {errc::unsupported}, "join() by a store that cannot");
    else in.refused(in.store().join({}), {errc::unsupported, errc::invalid_argument}, "join() of no transaction");
    int other = 0;
    in.refused(in.store().join(native_transaction::of(other)), {errc::unsupported, errc::invalid_argument},
               "join() of what is no transaction");
}

void instances_share(store_lab& in) {
    holdfast::store& other = in.other();
    mark made(in);
    check(made.is_in(other), "the other instance sees what was written");
}

void data_outlives_the_instance(store_lab& in) {
    mark made(in);
    in.reopen();
    check(made.is_in(in.store()), "an acknowledged write is there when the store is opened again");
}

void destroy_leaves_nothing(store_lab& in) {
    mark made(in);
    in.ok(in.store().destroy(), "destroy()");
    in.ok(in.store().destroy(), "destroy() of what is gone");
    in.ok(in.store().prepare(), "prepare() after destroy()");
    check(!made.is_in(in.store()), "destroy() removes what was written");
}

void clocks_agree(store_lab& in) {
    holdfast::store& other = in.other();
    const store_time before = in.now();
    const store_time there = in.ok(other.now(), "now()");
    const store_time after = in.now();
    check(before <= there && there <= after, "two instances read one clock, the store's");
}

// What a worker does for jobs whose handlers run.
task<result<void>> work_on_a_job(job_store& jobs, new_job one) {
    auto enqueueing = jobs.enqueue({std::move(one)});
    if (auto done = co_await std::move(enqueueing); !done) co_return std::unexpected(done.error());
    auto claiming = jobs.claim({{"default"}, 1, 1min, "kit"});
    const auto claimed = co_await std::move(claiming);
    if (!claimed) co_return std::unexpected(claimed.error());
    if (claimed->size() != 1) co_return fail(errc::internal, "the job was not claimed");
    const job_lease* const held[] = {&claimed->front().lease};
    auto beating = jobs.heartbeat(held, 1min);
    if (auto done = co_await std::move(beating); !done) co_return std::unexpected(done.error());
    const settlement ends[] = {{&claimed->front().lease, settlement::kind::succeed, {}, {}, {}}};
    auto settling = jobs.settle(ends);
    if (auto done = co_await std::move(settling); !done) co_return std::unexpected(done.error());
    co_return result<void>{};
}

task<result<void>> hold_a_lock(lock_store& locks) {
    auto taking = locks.try_acquire("held", 1min);
    const auto taken = co_await std::move(taking);
    if (!taken) co_return std::unexpected(taken.error());
    if (!*taken) co_return fail(errc::internal, "the lock was not free");
    auto renewing = locks.renew(**taken, 1min);
    if (auto done = co_await std::move(renewing); !done) co_return done;
    auto releasing = locks.release(**taken);
    co_return co_await std::move(releasing);
}

template <class T>
task<result<void>> without_value(task<result<T>> call) {
    auto done = co_await std::move(call);
    if (!done) co_return std::unexpected(done.error());
    co_return result<void>{};
}

void waits_for_no_handler(store_lab& in) {
    std::vector<task<result<void>>> calls;
    holdfast::store& store = in.store();
    for (int i = 0; i < 20; ++i) calls.push_back(without_value(store.now()));
    if (auto* jobs = store.jobs()) calls.push_back(work_on_a_job(*jobs, any_job(in)));
    if (auto* locks = store.locks()) calls.push_back(hold_a_lock(*locks));
    if (auto* keys = store.idempotency()) calls.push_back(without_value(keys->try_claim("key", 1h)));
    if (auto* outbox = store.outbox())
        calls.push_back(outbox->append({{in.next_id(), "topic", "", {.type = "t", .body = "{}"}, {}}}));
    const held_threads held(in.on());
    for (auto& each : in.at_once(std::move(calls)))
        in.value_of(std::move(each), "a call while handlers have all threads");
    check(!held.were_waited_for(),
          "a store does not wait for the runtime's blocking threads, which are the handlers': it has its own");
}

} // namespace

store_case_list store_basics() {
    return {
        {"says what it is, what a write survives, and what it can lose", &says_what_it_is},
        {"prepare() can be called again, and many times at once", &prepare_is_repeatable},
        {"two instances can prepare at the same time", &instances_prepare_together},
        {"the clock goes on and never goes back", &clock_goes_on},
        {"two instances read the same clock", &clocks_agree},
        {"what is not offered answers unsupported", &absent_is_unsupported},
        {"calls go on while handlers have every blocking thread of the runtime", &waits_for_no_handler},
        {"a second instance sees what the first wrote", &instances_share},
        {"an acknowledged write outlives the instance when the store says so", &data_outlives_the_instance},
        {"destroy() leaves an empty store, and can be called again", &destroy_leaves_nothing},
    };
}

} // namespace holdfast::conformance
