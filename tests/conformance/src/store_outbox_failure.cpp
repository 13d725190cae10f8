// Outbox: what cannot be sent.
#include <set>

#include "store_outbox.hpp"

namespace holdfast::conformance {

namespace {

void blocks_its_key_alone(store_lab& in) {
    const outbox_user user(in);
    const identifier bad = user.append("k");
    const identifier behind = user.append("k");
    const identifier other = user.append("l");
    const identifier free_a = user.append("");
    const identifier free_b = user.append("");
    const leased_message got = user.lease_one();
    check_equal(user.failed(got, short_lease), write_answer::done, "failed");
    check_equal(user.drain(1), std::vector{other, free_a, free_b}, "what is sent while one key waits");
    check_equal(user.unsent(), std::uint64_t{2}, "unsent");
    in.pass(short_lease);
    const auto again = user.lease(10);
    check_equal(ids_of(again), std::vector{bad, behind}, "what is leased when it is due again");
    check_equal(again[0].attempts, 1, "attempts of the one that failed");
    check_equal(again[1].attempts, 0, "attempts of the one behind it");
    check_equal(user.delivered(got), write_answer::stale, "a failure ends its lease");
}

void no_order_no_blocking(store_lab& in) {
    const outbox_user user(in);
    user.append("");
    const identifier second = user.append("");
    user.failed(user.lease_one(), 1h);
    check_equal(user.drain(10), std::vector{second}, "what is sent while another without a key waits");
}

void a_row_breaks_at_a_failure(store_lab& in) {
    const outbox_user user(in);
    std::vector<identifier> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(user.append("k"));
    const auto leased = user.lease(3);
    check_equal(leased.size(), std::size_t{3}, "messages leased");
    check_equal(user.failed(leased[0], short_lease), write_answer::done, "failed, the first");
    check_equal(user.failed(leased[1], 0s), write_answer::done, "failed, the second");
    check_equal(user.failed(leased[2], 0s), write_answer::done, "failed, the third");
    check_equal(user.lease(10).size(), std::size_t{0}, "messages to lease while the first waits");
    in.pass(short_lease);
    check_equal(user.drain(10), ids, "what is sent then, in order");
}

// A relay whose leases have run out gives up the first of each key, while others lease what is there.
void late_failures(store_lab& in) {
    constexpr std::size_t keys = 50;
    const outbox_user user(in);
    for (int round = 0; round < in.rounds(); ++round) {
        std::vector<outgoing_message> batch;
        for (std::size_t i = 0; i < 2 * keys; ++i)
            batch.push_back(user.make(std::to_string(round) + " " + std::to_string(i % keys)));
        in.ok(user.outbox().append(batch), "append");
        const auto late = user.lease(2 * keys, 1ms);
        check_equal(late.size(), 2 * keys, "messages leased");
        in.pass(2ms);
        std::vector<message_failure> failures;
        for (std::size_t i = 0; i < keys; ++i) failures.push_back({&late[i].lease, "unreachable", 1h, false});
        struct calls {
            static task<std::vector<leased_message>> give_up(outbox_store* on, std::vector<message_failure> which) {
                auto failing = on->failed(which);
                auto answer = co_await std::move(failing);
                store_lab::value_of(std::move(answer), "failed");
                co_return std::vector<leased_message>{};
            }
            static task<std::vector<leased_message>> lease(outbox_store* on) {
                auto leasing = on->lease_batch(2 * keys, 5min, "relay");
                auto answer = co_await std::move(leasing);
                co_return store_lab::value_of(std::move(answer), "lease_batch");
            }
        };
        std::vector<task<std::vector<leased_message>>> all;
        all.push_back(calls::lease(&user.outbox()));
        all.push_back(calls::give_up(&user.outbox(), std::move(failures)));
        all.push_back(calls::lease(&user.outbox()));
        for (const auto& leased : in.at_once(std::move(all))) {
            std::set<std::string> begun;
            for (const auto& each : leased) {
                const bool first = each.position <= late[keys - 1].position;
                if (first) begun.insert(each.message.key);
                check(first || begun.contains(each.message.key), "the next of a key waits for its first");
            }
        }
    }
}

// What was delivered is forgotten, and may come again under the same id.
void tokens_outlive_the_message(store_lab& in) {
    const outbox_user user(in);
    const outgoing_message m = user.make("k");
    user.append(m);
    const leased_message late = user.lease_one(short_lease);
    in.pass(short_lease);
    const leased_message second = user.lease_one();
    check_equal(user.delivered(second), write_answer::done, "delivered");
    user.append(m);
    const leased_message third = user.lease_one();
    check(third.lease.token() > second.lease.token(), "the token is larger than any before");
    check_equal(user.delivered(late), write_answer::stale, "delivered by who held it first");
    check_equal(user.failed(second, 0s), write_answer::stale, "failed by who delivered it");
    check_equal(user.delivered(third), write_answer::done, "delivered by its holder");
}

void set_aside(store_lab& in) {
    const outbox_user user(in);
    const identifier poison = user.append("k");
    const identifier next = user.append("k");
    const leased_message got = user.lease_one();
    check_equal(user.failed(got, 0s, true), write_answer::done, "set aside");
    check_equal(user.drain(10), std::vector{next}, "the next of the key passes");
    check_equal(user.unsent(), std::uint64_t{0}, "unsent, without what was set aside");
    const auto kept = user.set_aside();
    check_equal(kept.size(), std::size_t{1}, "messages set aside");
    check_equal(kept[0].message.id, poison, "id");
    check_equal(kept[0].message.key, std::string("k"), "key");
    check_equal(kept[0].position, got.position, "position");
    check_equal(kept[0].attempts, 1, "attempts");
    check_equal(kept[0].last_error, std::string("unreachable"), "last error");
    check(user.delivered(got) != write_answer::done, "its lease has ended");
}

void sent_again(store_lab& in) {
    const outbox_user user(in);
    const identifier poison = user.append("k");
    user.failed(user.lease_one(), 0s, true);
    const identifier later = user.append("k");
    check_equal(in.ok(user.outbox().send_again({poison, in.next_id(), later}), "send_again"), 1, "put back in line");
    check_equal(user.set_aside().size(), std::size_t{0}, "messages set aside");
    const auto leased = user.lease(10);
    check_equal(ids_of(leased), std::vector{poison, later}, "what is leased, in its old place");
    check_equal(leased[0].attempts, 0, "attempts");
}

void discarded(store_lab& in) {
    const outbox_user user(in);
    const identifier poison = user.append("k");
    user.failed(user.lease_one(), 0s, true);
    const identifier waiting = user.append("k");
    check_equal(in.ok(user.outbox().discard({poison, waiting, in.next_id()}), "discard"), 1,
                "discarded: only what was set aside");
    check_equal(user.set_aside().size(), std::size_t{0}, "messages set aside");
    check_equal(in.ok(user.outbox().send_again({poison}), "send_again"), 0, "put back of what was discarded");
    check_equal(user.drain(10), std::vector{waiting}, "what is sent");
}

void many_set_aside(store_lab& in) {
    const outbox_user user(in);
    std::vector<outgoing_message> batch;
    for (int i = 0; i < 25; ++i) batch.push_back(user.make(""));
    in.ok(user.outbox().append(batch), "append");
    const auto leased = user.lease(25);
    std::vector<message_failure> failures;
    for (const auto& each : leased) failures.push_back({&each.lease, "poison", 0s, true});
    for (const write_answer each : in.ok(user.outbox().failed(failures), "failed"))
        check_equal(each, write_answer::done, "failed");
    std::vector<identifier> paged;
    std::uint64_t after = 0;
    for (auto page = user.set_aside(10, 0); !page.empty(); page = user.set_aside(10, after)) {
        check(page.size() <= 10, "a page has no more than was asked for");
        for (const auto& each : page) paged.push_back(each.message.id);
        after = page.back().position;
    }
    check_equal(paged, ids_of(leased), "pages of what was set aside, oldest first");
}

void one_stale_in_a_batch(store_lab& in) {
    const outbox_user user(in);
    for (int i = 0; i < 50; ++i) user.append("");
    const auto leased = user.lease(50);
    check_equal(user.failed(leased.at(20), 1h), write_answer::done, "failed");
    std::vector<const message_lease*> all;
    for (const auto& each : leased) all.push_back(&each.lease);
    const auto answers = in.ok(user.outbox().delivered(all), "delivered");
    for (std::size_t i = 0; i < 50; ++i)
        check_equal(answers.at(i), i == 20 ? write_answer::stale : write_answer::done, "answer");
    check_equal(user.unsent(), std::uint64_t{1}, "unsent");
}

void it_tries_for_ever(store_lab& in) {
    const outbox_user user(in);
    user.append("k");
    std::uint64_t token = 0;
    for (int i = 0; i < 20; ++i) {
        const leased_message got = user.lease_one();
        check_equal(got.attempts, i, "attempts");
        check(got.lease.token() > token, "the token grows");
        token = got.lease.token();
        user.failed(got, 0s);
    }
}

} // namespace

store_case_list outbox_failure_cases() {
    return {
        {"one that cannot be sent blocks its key and nothing else", &blocks_its_key_alone},
        {"without a key nothing is blocked", &no_order_no_blocking},
        {"a row that was leased together waits for its first", &a_row_breaks_at_a_failure},
        {"failures that come while others lease let nothing pass", &late_failures},
        {"a token does not come back with a message that was sent and appended again", &tokens_outlive_the_message},
        {"poison is set aside and lets the next pass", &set_aside},
        {"what was set aside can be sent again, in its old place", &sent_again},
        {"what was set aside can be discarded, nothing else", &discarded},
        {"what was set aside is listed in pages", &many_set_aside},
        {"one stale lease in a batch hurts no other", &one_stale_in_a_batch},
        {"failures are counted, and tokens grow", &it_tries_for_ever},
    };
}

} // namespace holdfast::conformance
