// Idempotency: one effect per key, whoever asks and however often.
#include "store_lab.hpp"
#include "store_names.hpp"

namespace holdfast::conformance {

namespace {

class key_user {
public:
    explicit key_user(store_lab& in) : key_user(in, in.idempotency()) {}
    key_user(store_lab& in, idempotency_store& through) : in_(in), keys_(through) {}

    idempotency_store& keys() const { return keys_; }
    begin_answer begin(std::string key, std::string fingerprint = "f", duration lease_for = 5min,
                       duration keep_for = default_idempotency_ttl) const {
        return in_.ok(keys_.begin({std::move(key), std::move(fingerprint), lease_for, keep_for}), "begin");
    }
    idempotency_started started(std::string key, duration lease_for = 5min) const {
        auto answer = begin(std::move(key), "f", lease_for);
        check(std::holds_alternative<idempotency_started>(answer), "begin is started");
        return std::get<idempotency_started>(std::move(answer));
    }
    void complete(const idempotency_lease& held, std::string body, duration ttl = default_idempotency_ttl) const {
        in_.ok(keys_.complete(held, {.type = "answer", .body = std::move(body)}, ttl), "complete");
    }
    void is_completed(std::string key, const std::string& body) const {
        const auto answer = begin(std::move(key));
        check(std::holds_alternative<idempotency_completed>(answer), "begin is answered with what was stored");
        check(std::get<idempotency_completed>(answer).result.body == body, "the answer that was stored");
    }

private:
    store_lab& in_;
    idempotency_store& keys_;
};

void begin_and_complete(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k");
    check_equal(mine.taken_over, false, "taken_over");
    check_equal(mine.lease.subject(), std::string("k"), "subject of the lease");
    check(mine.lease.token() > 0, "tokens start above zero");
    const auto second = user.begin("k");
    check(std::holds_alternative<idempotency_in_progress>(second), "a second caller is told that it is in progress");
    check_between(std::get<idempotency_in_progress>(second).retry_after, duration(1s), duration(5min), "retry_after");
    const payload answer{.type = "order.created", .version = 3, .content_type = "text/plain", .body = "order 17"};
    in.ok(user.keys().complete(mine.lease, answer), "complete");
    for (int i = 0; i < 2; ++i) {
        const auto later = user.begin("k");
        check(std::holds_alternative<idempotency_completed>(later), "later callers get the answer");
        check(std::get<idempotency_completed>(later).result == answer, "the answer that was stored");
    }
    user.started("another key");
}

void another_request_is_a_mismatch(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k");
    check(std::holds_alternative<idempotency_mismatch>(user.begin("k", "g")), "another request, while in progress");
    user.complete(mine.lease, "a");
    check(std::holds_alternative<idempotency_mismatch>(user.begin("k", "g")), "another request, when completed");
    check(std::holds_alternative<idempotency_mismatch>(user.begin("k", "")), "no fingerprint, when completed");
    user.is_completed("k", "a");
}

void a_hundred_at_once(store_lab& in) {
    const key_user user(in);
    std::vector<task<result<begin_answer>>> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(user.keys().begin({"k", "f", 5min, default_idempotency_ttl}));
    std::vector<idempotency_started> started;
    for (auto& each : in.at_once(std::move(calls))) {
        auto answer = in.value_of(std::move(each), "begin");
        if (auto* mine = std::get_if<idempotency_started>(&answer)) started.push_back(std::move(*mine));
        else check(std::holds_alternative<idempotency_in_progress>(answer), "the others are told it is in progress");
    }
    check_equal(started.size(), std::size_t{1}, "callers out of 100 that were started");
    user.complete(started[0].lease, "one effect");
    user.is_completed("k", "one effect");
}

void a_dead_holder_is_taken_over(store_lab& in) {
    const key_user user(in);
    const auto first = user.started("k", short_lease);
    in.pass(short_lease);
    const auto second = user.started("k");
    check_equal(second.taken_over, true, "taken_over");
    check(second.lease.token() > first.lease.token(), "the token has grown");
    in.refused(user.keys().complete(first.lease, {.type = "t", .body = "late"}), {errc::stale_lease},
               "a late complete");
    in.refused(user.keys().abandon(first.lease), {errc::stale_lease}, "a late abandon");
    in.refused(user.keys().renew(first.lease, 1min), {errc::stale_lease}, "a late renew");
    check(std::holds_alternative<idempotency_in_progress>(user.begin("k")), "the second holder is undisturbed");
    user.complete(second.lease, "good");
    in.refused(user.keys().complete(first.lease, {.type = "t", .body = "late"}), {errc::stale_lease},
               "a complete after another's");
    in.refused(user.keys().abandon(first.lease), {errc::stale_lease}, "an abandon after another's complete");
    user.is_completed("k", "good");
}

void taken_over_once(store_lab& in) {
    const key_user user(in);
    const auto first = user.started("k", short_lease);
    in.pass(short_lease);
    std::vector<task<result<begin_answer>>> calls;
    for (int i = 0; i < 50; ++i) calls.push_back(user.keys().begin({"k", "f", 5min, default_idempotency_ttl}));
    int started = 0;
    for (auto& each : in.at_once(std::move(calls)))
        started += std::holds_alternative<idempotency_started>(in.value_of(std::move(each), "begin")) ? 1 : 0;
    check_equal(started, 1, "callers out of 50 that took over");
}

void late_but_not_overtaken(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k", short_lease);
    in.pass(short_lease + 10ms);
    user.complete(mine.lease, "late but alone");
    user.is_completed("k", "late but alone");
}

void completing_twice(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k");
    user.complete(mine.lease, "a");
    user.complete(mine.lease, "a");
    user.is_completed("k", "a");
    in.refused(user.keys().abandon(mine.lease), {errc::stale_lease}, "abandon of what was completed");
    user.is_completed("k", "a");
}

void the_first_answer_stays(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k");
    user.complete(mine.lease, "a", 1h);
    user.complete(mine.lease, "b", short_lease);
    user.is_completed("k", "a");
    in.pass(short_lease + 10ms);
    user.is_completed("k", "a");
}

// An unfinished record is forgotten after its time, whoever still holds it, and whether or not it is still on the disk.
void forgotten_unfinished(store_lab& in) {
    const key_user user(in);
    const auto begin = [&](std::string key, duration keep_for) {
        return std::get<idempotency_started>(user.begin(std::move(key), "f", short_lease, keep_for)).lease;
    };
    const auto renewed = begin("l", 4 * short_lease);
    in.ok(user.keys().renew(renewed, short_lease), "renew");
    const auto first = begin("k", short_lease);
    in.pass(short_lease + 10ms);
    in.refused(user.keys().complete(first, {.type = "t", .body = "late"}), {errc::stale_lease}, "complete");
    in.refused(user.keys().abandon(first), {errc::stale_lease}, "abandon");
    in.refused(user.keys().renew(first, 1min), {errc::stale_lease}, "renew");
    in.pass(3 * short_lease);
    const auto again = user.begin("l", "another request");
    check(std::holds_alternative<idempotency_started>(again), "what was renewed is kept no longer than that");
    check_equal(std::get<idempotency_started>(again).taken_over, false, "taken_over, of what was forgotten");
}

void abandoning(store_lab& in) {
    const key_user user(in);
    const auto first = user.started("k");
    in.ok(user.keys().abandon(first.lease), "abandon");
    const auto second = user.started("k");
    check_equal(second.taken_over, false, "taken_over, after the first gave up");
    check(second.lease.token() > first.lease.token(), "the token has grown");
    in.refused(user.keys().complete(first.lease, {.type = "t", .body = "late"}), {errc::stale_lease},
               "complete after abandon");
    in.refused(user.keys().abandon(first.lease), {errc::stale_lease}, "abandon after another began");
    user.complete(second.lease, "b");
    user.is_completed("k", "b");
}

void another_fingerprint_after_abandon(store_lab& in) {
    const key_user user(in);
    const auto first = user.started("k");
    in.ok(user.keys().abandon(first.lease), "abandon");
    check(std::holds_alternative<idempotency_started>(user.begin("k", "another")), "an abandoned key is forgotten");
}

void renewing(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k", short_lease);
    in.ok(user.keys().renew(mine.lease, 5min), "renew");
    in.pass(short_lease + 10ms);
    check(std::holds_alternative<idempotency_in_progress>(user.begin("k")), "a renewed lease is not taken over");
}

void forgotten_after_its_time(store_lab& in) {
    const key_user user(in);
    const auto first = user.started("k");
    user.complete(first.lease, "a", short_lease);
    in.pass(short_lease + 10ms);
    auto answer = user.begin("k", "another request");
    check(std::holds_alternative<idempotency_started>(answer), "an answer is forgotten after its time");
    const auto& second = std::get<idempotency_started>(answer);
    check_equal(second.taken_over, false, "taken_over, of what was forgotten");
    check(second.lease.token() > first.lease.token(), "tokens grow even so");
    in.refused(user.keys().complete(first.lease, {.type = "t", .body = "late"}), {errc::stale_lease},
               "a late complete");
}

void the_short_form(store_lab& in) {
    const key_user user(in);
    const auto claim = [&](std::string key, duration ttl) {
        return in.ok(user.keys().try_claim(std::move(key), ttl), "try_claim");
    };
    check_equal(claim("k", 1h), true, "the first claim");
    check_equal(claim("k", 1h), false, "the second claim");
    check_equal(claim("other", short_lease), true, "the first claim of another");
    in.pass(short_lease + 10ms);
    check_equal(claim("other", 1h), true, "a claim after the first one's time");
    check_equal(claim("k", 1h), false, "a claim within the first one's time");
    user.started("k"); // the two forms do not see each other's keys
}

void the_short_form_at_once(store_lab& in) {
    const key_user user(in);
    std::vector<task<result<bool>>> calls;
    for (int i = 0; i < 100; ++i) calls.push_back(user.keys().try_claim("k", 1h));
    int won = 0;
    for (auto& each : in.at_once(std::move(calls))) won += in.value_of(std::move(each), "try_claim") ? 1 : 0;
    check_equal(won, 1, "claimants out of 100 that won");
}

void odd_keys(store_lab& in) {
    const key_user user(in);
    auto names = odd_names();
    for (std::string& each : odd_bytes()) names.push_back(std::move(each));
    for (const std::string& each : names) {
        auto mine = user.begin(each, each);
        check(std::holds_alternative<idempotency_started>(mine), "each key is one of its own");
        const auto& lease = std::get<idempotency_started>(mine).lease;
        check(lease.subject() == each, "subject of the lease");
        in.ok(user.keys().complete(lease, {.type = "t", .body = each}), "complete");
        const auto again = user.begin(each, each);
        check(std::holds_alternative<idempotency_completed>(again), "begin again");
        check(std::get<idempotency_completed>(again).result.body == each, "the answer that was stored");
        check(in.ok(user.keys().try_claim(each), "try_claim"), "a key of any bytes");
        check(!in.ok(user.keys().try_claim(each), "try_claim"), "a key of any bytes, again");
    }
}

void what_is_refused(store_lab& in) {
    const key_user user(in);
    const std::vector wrong = {errc::invalid_argument, errc::too_large};
    in.refused(user.keys().begin({std::string(1025, 'x'), "f", 1min, 1h}), wrong, "a key of 1025 bytes");
    in.refused(user.keys().begin({"", "f", 1min, 1h}), wrong, "an empty key");
    in.refused(user.keys().begin({"k", "f", 0s, 1h}), wrong, "a lease for no time");
    in.refused(user.keys().try_claim(std::string(1025, 'x')), wrong, "a claim of 1025 bytes");
    in.refused(user.keys().try_claim(""), wrong, "an empty claim");
    in.refused(user.keys().try_claim("k", 0s), wrong, "a claim for no time");
    const auto mine = user.started("k");
    in.refused(user.keys().renew(mine.lease, 0s), wrong, "a renewal for no time");
    in.refused(user.keys().complete(mine.lease, {.type = "t", .body = "x"}, 0s), wrong, "an answer for no time");
    in.refused(user.keys().complete(mine.lease, {.type = "t", .body = "x"}, -1s), wrong, "an answer for less");
    in.refused(user.keys().complete(mine.lease, {.type = "t", .body = std::string((10u << 20) + 1, 'x')}),
               {errc::too_large}, "an answer above 10 MiB");
    user.complete(mine.lease, "small");
    user.is_completed("k", "small");
    in.refused(user.keys().complete(idempotency_lease("never begun", 1), {.type = "t", .body = ""}),
               {errc::stale_lease}, "complete of what was never begun");
}

void the_largest_answer(store_lab& in) {
    const key_user user(in);
    const auto mine = user.started("k");
    std::string body(10u << 20, '\0');
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 % 251);
    user.complete(mine.lease, body);
    user.is_completed("k", body);
}

void between_two_instances(store_lab& in) {
    const key_user here(in);
    const key_user there(in, *in.other().idempotency());
    for (int round = 0; round < in.rounds(); ++round) {
        std::vector<task<result<begin_answer>>> calls;
        const std::string key = "k" + std::to_string(round);
        for (int i = 0; i < 10; ++i)
            calls.push_back((i % 2 == 0 ? here : there).keys().begin({key, "f", 5min, default_idempotency_ttl}));
        int started = 0;
        for (auto& each : in.at_once(std::move(calls)))
            started += std::holds_alternative<idempotency_started>(in.value_of(std::move(each), "begin")) ? 1 : 0;
        check_equal(started, 1, "callers of two instances that were started");
    }
    const auto mine = here.started("k");
    there.complete(mine.lease, "through the other");
    here.is_completed("k", "through the other");
}

} // namespace

store_case_list idempotency_cases() {
    return {
        {"the first caller is started, later ones get its answer", &begin_and_complete},
        {"the same key with another request is a mismatch", &another_request_is_a_mismatch},
        {"of a hundred callers one is started", &a_hundred_at_once},
        {"a holder that died is taken over and fenced off", &a_dead_holder_is_taken_over},
        {"of fifty callers one takes over", &taken_over_once},
        {"a holder that is late but was not taken over may complete", &late_but_not_overtaken},
        {"completing twice with the same lease is fine", &completing_twice},
        {"an answer that was stored stays, whatever the same holder says later", &the_first_answer_stays},
        {"an unfinished key is forgotten after its time, renewed or not", &forgotten_unfinished},
        {"an abandoned key starts afresh with a higher token", &abandoning},
        {"an abandoned key may be begun for another request", &another_fingerprint_after_abandon},
        {"a renewed lease is not taken over", &renewing},
        {"an answer is forgotten after its time, the token is not", &forgotten_after_its_time},
        {"try_claim is true once within its time", &the_short_form},
        {"of a hundred claimants one wins", &the_short_form_at_once},
        {"keys are any bytes", &odd_keys},
        {"what is too long, too large or for no time is refused", &what_is_refused},
        {"an answer of exactly 10 MiB is kept", &the_largest_answer},
        {"two instances start one caller between them", &between_two_instances},
    };
}

} // namespace holdfast::conformance
