// Locks: one holder at a time, and a token that tells an old one from a new one.
#include <mutex>

#include "store_lab.hpp"
#include "store_names.hpp"

namespace holdfast::conformance {

namespace {

std::optional<lock_lease> acquire(store_lab& in, std::string resource = "r", duration ttl = 5min) {
    return in.ok(in.locks().try_acquire(std::move(resource), ttl), "try_acquire");
}

lock_lease held(store_lab& in, std::string resource = "r", duration ttl = 5min) {
    auto got = acquire(in, std::move(resource), ttl);
    check(got.has_value(), "the lock is free");
    return std::move(*got);
}

void one_holder(store_lab& in) {
    const lock_lease mine = held(in);
    check_equal(mine.subject(), std::string("r"), "subject of the lease");
    check(mine.token() > 0, "tokens start above zero");
    check(!acquire(in), "a lock that is held is not given again");
    held(in, "another");
    in.ok(in.locks().release(mine), "release");
    const lock_lease next = held(in);
    check(next.token() > mine.token(), "the token has grown");
}

void a_hundred_at_once(store_lab& in) {
    for (int round = 0; round < 3; ++round) {
        std::vector<task<result<std::optional<lock_lease>>>> calls;
        for (int i = 0; i < 100; ++i) calls.push_back(in.locks().try_acquire("r", 5min));
        std::vector<lock_lease> won;
        for (auto& each : in.at_once(std::move(calls)))
            if (auto got = in.value_of(std::move(each), "try_acquire")) won.push_back(std::move(*got));
        check_equal(won.size(), std::size_t{1}, "callers out of 100 that got the lock");
        in.ok(in.locks().release(won[0]), "release");
    }
}

void it_ends_by_itself(store_lab& in) {
    const lock_lease first = held(in, "r", short_lease);
    in.pass(short_lease);
    const lock_lease second = held(in);
    check(second.token() > first.token(), "the token has grown");
}

void renewing(store_lab& in) {
    const lock_lease mine = held(in, "r", short_lease);
    in.ok(in.locks().renew(mine, 5min), "renew");
    in.pass(short_lease + 10ms);
    check(!acquire(in), "a renewed lock is held on to");
    in.ok(in.locks().renew(mine, short_lease), "renew for less");
    in.pass(short_lease + 10ms);
    held(in);
}

void after_it_was_lost(store_lab& in) {
    const lock_lease first = held(in, "r", short_lease);
    in.pass(short_lease);
    in.refused(in.locks().renew(first, 5min), {errc::stale_lease}, "renew of a lock that ran out");
    const lock_lease second = held(in);
    in.refused(in.locks().renew(first, 5min), {errc::stale_lease}, "renew of another's lock");
    in.ok(in.locks().release(first), "release of another's lock");
    check(!acquire(in), "the new holder is undisturbed");
    in.ok(in.locks().renew(second, 5min), "renew by the new holder");
    in.ok(in.locks().release(second), "release");
    in.ok(in.locks().release(second), "release again");
    in.refused(in.locks().renew(second, 5min), {errc::stale_lease}, "renew of a lock that was released");
}

void tokens_grow_for_ever(store_lab& in) {
    std::uint64_t last = 0;
    for (int i = 0; i < 30; ++i) {
        const bool expires = i % 10 == 9;
        const lock_lease mine = held(in, "r", expires ? duration(20ms) : duration(5min));
        check(mine.token() > last, "the token is larger than any before");
        last = mine.token();
        if (expires) in.pass(20ms);
        else in.ok(in.locks().release(mine), "release");
    }
}

void tokens_outlive_the_instance(store_lab& in) {
    const lock_lease before = held(in);
    in.ok(in.locks().release(before), "release");
    in.reopen();
    check(held(in).token() > before.token(), "the token has grown");
}

void mutual_exclusion(store_lab& in) {
    struct owner {
        static task<void> run(runtime* on, lock_store* locks, int* inside, int* entered, int* overlaps,
                              std::mutex* guard, std::uint64_t* last) {
            for (int i = 0; i < 20; ++i) {
                auto acquiring = locks->try_acquire("r", 5min);
                auto answer = co_await std::move(acquiring);
                auto got = store_lab::value_of(std::move(answer), "try_acquire");
                if (!got) continue;
                {
                    const std::lock_guard lock(*guard);
                    *overlaps += ++*inside > 1 || got->token() <= *last ? 1 : 0;
                    *last = got->token();
                    ++*entered;
                }
                co_await resume_on(*on); // let others in, if they can
                {
                    const std::lock_guard lock(*guard);
                    --*inside;
                }
                auto releasing = locks->release(*got);
                auto released = co_await std::move(releasing);
                store_lab::value_of(std::move(released), "release");
            }
        }
    };
    int inside = 0, entered = 0, overlaps = 0;
    std::uint64_t last = 0;
    std::mutex guard;
    lock_store& here = in.locks();
    lock_store& there = in.store().capabilities().shared ? *in.other().locks() : here;
    std::vector<task<void>> owners;
    for (int i = 0; i < 10; ++i)
        owners.push_back(
            owner::run(&in.on(), i % 2 == 0 ? &here : &there, &inside, &entered, &overlaps, &guard, &last));
    in.at_once(std::move(owners));
    check(entered > 0, "somebody got the lock");
    check_equal(overlaps, 0, "times that two held the lock, or the token did not grow");
}

void between_two_instances(store_lab& in) {
    const lock_lease mine = held(in);
    lock_store& there = *in.other().locks();
    check(!in.ok(there.try_acquire("r", 5min), "try_acquire"), "the other instance respects the lock");
    in.ok(there.renew(mine, 5min), "renew through the other instance");
    in.ok(there.release(mine), "release through the other instance");
    const auto next = in.ok(there.try_acquire("r", 5min), "try_acquire");
    check(next && next->token() > mine.token(), "the token grows across instances");
}

void odd_resources(store_lab& in) {
    auto names = odd_names();
    for (std::string& each : odd_bytes()) names.push_back(std::move(each));
    for (const std::string& each : names) {
        const lock_lease mine = held(in, each);
        check(mine.subject() == each, "subject of the lease");
        check(!acquire(in, each), "the lock is held");
        in.ok(in.locks().release(mine), "release");
    }
}

void what_is_refused(store_lab& in) {
    const std::vector wrong = {errc::invalid_argument, errc::too_large};
    in.refused(in.locks().try_acquire("", 1min), wrong, "a resource without a name");
    in.refused(in.locks().try_acquire(std::string(1025, 'x'), 1min), wrong, "a resource of 1025 bytes");
    in.refused(in.locks().try_acquire("r", 0s), wrong, "a lock for no time");
    in.refused(in.locks().try_acquire("r", -1s), wrong, "a lock that has ended");
    const lock_lease mine = held(in);
    in.refused(in.locks().renew(mine, 0s), wrong, "a renewal for no time");
    const lock_lease forged("r", mine.token() + 1);
    in.refused(in.locks().renew(forged, 1min), {errc::stale_lease}, "a token of the future");
    in.ok(in.locks().release(forged), "release with a token of the future");
    check(!acquire(in), "the holder is undisturbed");
    in.refused(in.locks().renew(lock_lease("never locked", 1), 1min), {errc::stale_lease}, "a lock that never was");
    in.ok(in.locks().release(lock_lease("never locked", 1)), "release of a lock that never was");
}

} // namespace

store_case_list lock_cases() {
    return {
        {"one holder at a time, and never a wait", &one_holder},
        {"of a hundred callers one gets the lock", &a_hundred_at_once},
        {"a lock ends by itself", &it_ends_by_itself},
        {"a renewed lock is held on to, from now on", &renewing},
        {"a lock that was lost can be neither renewed nor taken from its new holder", &after_it_was_lost},
        {"tokens grow for ever, across release and expiry", &tokens_grow_for_ever},
        {"tokens outlive the instance", &tokens_outlive_the_instance},
        {"ten owners never hold it together, and tokens grow in their order", &mutual_exclusion},
        {"two instances share their locks", &between_two_instances},
        {"resources are any bytes", &odd_resources},
        {"what is too long, for no time or forged is refused", &what_is_refused},
    };
}

} // namespace holdfast::conformance
