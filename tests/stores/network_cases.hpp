// What a network may do between a store and its server, as one list for all stores that have one: calls of every facet are
// made while it does it, and afterwards nothing acknowledged is lost, nothing has two owners, and the store works on.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "harness/tcp_proxy.hpp"
#include "stores/support.hpp"

namespace holdfast::test {

// Two ways to the same data.
struct two_ways {
    store_desk& near; // never fails
    store& far;       // through the proxy; has 16 connections, and soon gives up
    harness::tcp_proxy& proxy;
};

// One call, in three parts. Each object is used once.
class trial {
public:
    explicit trial(const two_ways& with) : near(with.near), far(with.far) {}
    virtual ~trial() = default;
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;

    virtual std::string name() const = 0;
    virtual void arrange() = 0;       // while all is well
    virtual result<void> call() = 0;  // on `far`, while it is not; on a thread of its own
    virtual void check(bool ack) = 0; // when all is well again; ack: call() was answered
    bool right = true;                // as call() was answered; no checks on other threads than the test's

protected:
    static constexpr duration short_lease = std::chrono::milliseconds{300};

    // The server may get to know late what was sent, and leases end in their own time.
    template <class Try>
    auto eventually(Try one) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
        for (;; std::this_thread::sleep_for(std::chrono::milliseconds{20})) {
            if (auto got = one()) return got;
            if (std::chrono::steady_clock::now() > end) throw std::runtime_error(name() + ": waited in vain");
        }
    }
    template <class T>
    result<void> plain(result<T> answer) {
        if (!answer) return std::unexpected(std::move(answer.error()));
        return {};
    }

    store_desk& near;
    store& far;
};

namespace trials {

inline new_job later(store_desk& d) {
    new_job made = d.job();
    made.when = due::after(std::chrono::hours{1}); // so that no hint is on its way
    return made;
}

class enqueueing final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "enqueue"; }
    void arrange() override { job_ = later(near); }
    result<void> call() override { return plain(near.attempt(far.jobs()->enqueue({job_}))); }
    void check(bool ack) override {
        if (!ack) near.await(far.jobs()->enqueue({job_}));
        CHECK(near.state_of(job_.id) == job_state::scheduled);
        CHECK_FALSE(near.await(near.jobs().enqueue({job_})).at(0).created);
    }

private:
    new_job job_;
};

class claiming final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "claim"; }
    void arrange() override {
        new_job made = near.job();
        made.queue = queue_ = to_text(made.id);
        made.max_crashes = 1000;
        id_ = made.id;
        near.await(near.jobs().enqueue({made}));
    }
    result<void> call() override {
        auto got = near.attempt(claim_far());
        if (got) claimed_ = std::move(*got);
        return plain(std::move(got));
    }
    void check(bool ack) override {
        if (!ack)
            claimed_ = eventually([&] {
                           near.await(far.jobs()->recover_stale(100));
                           auto got = near.await(claim_far());
                           return got.empty() ? std::nullopt : std::optional(std::move(got));
                       }).value();
        REQUIRE(claimed_.size() == 1);
        // Nobody ended its lease, so it is good.
        CHECK(near.settle(claimed_[0].lease).answer == write_answer::done);
        const job_view after = near.view(id_);
        CHECK(after.state == job_state::succeeded);
        CHECK(std::ranges::count(after.history, std::string("succeeded"), &attempt_entry::outcome) == 1);
    }

private:
    task<result<std::vector<claimed_job>>> claim_far() { return far.jobs()->claim({{queue_}, 1, short_lease, "w"}); }
    std::string queue_;
    identifier id_;
    std::vector<claimed_job> claimed_;
};

class settling final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "settle"; }
    void arrange() override {
        new_job made = near.job();
        made.queue = to_text(made.id);
        near.await(near.jobs().enqueue({made}));
        claimed_ = near.await(near.jobs().claim({{made.queue}, 1, std::chrono::hours{1}, "w"}));
    }
    result<void> call() override {
        auto answer = settle_far();
        if (answer) right = answer->at(0).answer == write_answer::done;
        return plain(std::move(answer));
    }
    void check(bool ack) override {
        if (!ack) CHECK(settle_far().value().at(0).answer != write_answer::gone);
        const job_view after = near.view(claimed_.at(0).id);
        CHECK(after.state == job_state::succeeded);
        CHECK(after.history.size() == 1);
        CHECK(near.settle(claimed_[0].lease).answer == write_answer::stale);
    }

private:
    result<std::vector<settled>> settle_far() {
        const settlement one[] = {near.success(claimed_.at(0))};
        return near.attempt(far.jobs()->settle(one));
    }
    std::vector<claimed_job> claimed_;
};

class locking final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "lock"; }
    void arrange() override { resource_ = to_text(near.ids.next()); }
    result<void> call() override {
        auto got = near.attempt(far.locks()->try_acquire(resource_, short_lease));
        if (got) mine_ = std::move(*got);
        return plain(std::move(got));
    }
    void check(bool ack) override {
        CHECK(mine_.has_value() == ack);
        const auto next =
            eventually([&] { return near.await(far.locks()->try_acquire(resource_, std::chrono::hours{1})); });
        CHECK_FALSE(near.await(near.kept->locks()->try_acquire(resource_)).has_value());
        if (!mine_) return;
        CHECK(next->token() > mine_->token());
        CHECK(near.refusal(far.locks()->renew(*mine_, std::chrono::hours{1})).code == errc::stale_lease);
    }

private:
    std::string resource_;
    std::optional<lock_lease> mine_;
};

class beginning final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "idempotency begin"; }
    void arrange() override { key_ = to_text(near.ids.next()); }
    result<void> call() override {
        auto got = near.attempt(begin_far());
        if (got) mine_ = std::move(*got);
        return plain(std::move(got));
    }
    void check(bool ack) override {
        if (ack) REQUIRE(std::holds_alternative<idempotency_started>(*mine_));
        else
            mine_ = eventually([&] {
                auto got = near.await(begin_far());
                return std::holds_alternative<idempotency_started>(got) ? std::optional(std::move(got)) : std::nullopt;
            });
        near.await(far.idempotency()->complete(std::get<idempotency_started>(*mine_).lease, {"t", 1, "", "body"}));
        const auto stored = near.await(begin_far());
        REQUIRE(std::holds_alternative<idempotency_completed>(stored));
        CHECK(std::get<idempotency_completed>(stored).result.body == "body");
    }

private:
    task<result<begin_answer>> begin_far() {
        return far.idempotency()->begin({key_, "f", short_lease, std::chrono::hours{1}});
    }
    std::string key_;
    std::optional<begin_answer> mine_;
};

class claiming_key final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "idempotency try_claim"; }
    void arrange() override { key_ = to_text(near.ids.next()); }
    result<void> call() override {
        auto got = near.attempt(far.idempotency()->try_claim(key_));
        if (got) right = *got;
        return plain(std::move(got));
    }
    void check(bool ack) override {
        const bool first = near.await(far.idempotency()->try_claim(key_));
        if (ack) CHECK_FALSE(first);
        CHECK_FALSE(near.await(near.kept->idempotency()->try_claim(key_)));
    }

private:
    std::string key_;
};

// Alone with the outbox: it is the only trial that has messages.
class sending final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "outbox lease"; }
    void arrange() override {
        id_ = near.ids.next();
        near.await(near.kept->outbox()->append({{id_, "topic", "k", {}, {}}}));
    }
    result<void> call() override {
        auto got = near.attempt(lease_far());
        if (got) mine_ = std::move(*got);
        return plain(std::move(got));
    }
    void check(bool ack) override {
        if (!ack)
            mine_ = eventually([&] {
                        auto got = near.await(lease_far());
                        return got.empty() ? std::nullopt : std::optional(std::move(got));
                    }).value();
        REQUIRE(mine_.size() == 1);
        CHECK(mine_[0].message.id == id_);
        const message_lease* const sent[] = {&mine_[0].lease};
        CHECK(near.await(far.outbox()->delivered(sent)).at(0) == write_answer::done);
        CHECK(near.await(near.kept->outbox()->unsent()) == 0);
    }

private:
    task<result<std::vector<leased_message>>> lease_far() { return far.outbox()->lease_batch(10, short_lease, "r"); }
    identifier id_;
    std::vector<leased_message> mine_;
};

class receiving final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "inbox receive"; }
    void arrange() override { id_ = near.ids.next(); }
    result<void> call() override {
        auto got = near.attempt(far.outbox()->receive("c", id_, std::chrono::hours{1}));
        if (got) right = *got;
        return plain(std::move(got));
    }
    void check(bool ack) override {
        const bool first = near.await(far.outbox()->receive("c", id_, std::chrono::hours{1}));
        if (ack) CHECK_FALSE(first);
        CHECK_FALSE(near.await(near.kept->outbox()->receive("c", id_, std::chrono::hours{1})));
    }

private:
    identifier id_;
};

class committing final : public trial {
public:
    using trial::trial;
    std::string name() const override { return "commit of a unit"; }
    void arrange() override {
        job_ = later(near);
        unit_ = near.await(far.begin());
        near.await(far.jobs()->enqueue({job_}, unit_.get()));
        CHECK(near.await(far.outbox()->receive("c", job_.id, std::chrono::hours{1}, unit_.get())));
    }
    result<void> call() override { return near.attempt(unit_->commit()); }
    void check(bool ack) override {
        unit_.reset();
        // A commit may still be on its way between the two questions.
        const auto both = eventually([&]() -> std::optional<bool> {
            const bool there = std::holds_alternative<job_view>(near.await(near.jobs().get(job_.id)));
            const bool received = near.await(near.kept->outbox()->received("c", {job_.id})).at(0);
            return there == received ? std::optional(there) : std::nullopt;
        });
        if (ack) CHECK(*both);
    }

private:
    new_job job_;
    std::unique_ptr<unit_of_work> unit_;
};

inline std::vector<std::unique_ptr<trial>> all(const two_ways& with) {
    std::vector<std::unique_ptr<trial>> made;
    made.push_back(std::make_unique<enqueueing>(with));
    made.push_back(std::make_unique<claiming>(with));
    made.push_back(std::make_unique<settling>(with));
    made.push_back(std::make_unique<locking>(with));
    made.push_back(std::make_unique<beginning>(with));
    made.push_back(std::make_unique<claiming_key>(with));
    made.push_back(std::make_unique<sending>(with));
    made.push_back(std::make_unique<receiving>(with));
    made.push_back(std::make_unique<committing>(with));
    return made;
}

} // namespace trials

// All at once, while `begin` .. `end` holds. The number of calls that were answered.
inline int try_during(const two_ways& with, const std::function<void()>& begin, const std::function<void()>& end) {
    const auto each = trials::all(with);
    for (const auto& one : each) one->arrange();
    std::vector<result<void>> answers(each.size());
    begin();
    {
        std::vector<std::jthread> callers;
        for (std::size_t i = 0; i < each.size(); ++i) callers.emplace_back([&, i] { answers[i] = each[i]->call(); });
    }
    end();
    int answered = 0;
    for (std::size_t i = 0; i < each.size(); ++i) {
        INFO(each[i]->name() << ": " << (answers[i] ? "answered" : answers[i].error().message));
        if (!answers[i])
            CHECK((answers[i].error().code == errc::unavailable || answers[i].error().code == errc::unknown_outcome));
        CHECK(each[i]->right);
        each[i]->check(answers[i].has_value());
        answered += answers[i].has_value() ? 1 : 0;
    }
    return answered;
}

inline int try_in_peace(const two_ways& with) {
    return try_during(with, [] {}, [] {});
}

inline constexpr int trial_count = 9;

inline void check_cut_connections(const two_ways& with) {
    CHECK(try_in_peace(with) == trial_count);
    // While they are idle; the unit has one that it cannot do without.
    CHECK(try_during(
              with,
              [&] {
                  with.proxy.cut();
                  while (with.proxy.connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
                  std::this_thread::sleep_for(std::chrono::milliseconds{20}); // until the end has come through
              },
              [] {}) >= trial_count - 1);
    // While calls are under way, and nobody is let in for a while.
    std::jthread cutter;
    const int answered = try_during(
        with,
        [&] {
            with.proxy.delay(std::chrono::milliseconds{100});
            cutter = std::jthread([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds{150}); // requests are there, answers are not
                with.proxy.refuse(true);
                with.proxy.cut();
                std::this_thread::sleep_for(std::chrono::milliseconds{300});
                with.proxy.delay(std::chrono::milliseconds{0});
                with.proxy.refuse(false);
            });
        },
        [&] { cutter.join(); });
    CHECK(answered < trial_count);
    CHECK(try_in_peace(with) == trial_count);
}

inline void check_lost_ways(const two_ways& with) {
    CHECK(try_in_peace(with) == trial_count);
    const auto silent = [&](void (harness::tcp_proxy::*lose)(bool)) {
        return try_during(with, [&] { (with.proxy.*lose)(true); }, [&] { (with.proxy.*lose)(false); });
    };
    SECTION("requests are dropped") {
        CHECK(silent(&harness::tcp_proxy::drop_requests) == 0);
    }
    SECTION("replies are dropped") {
        CHECK(silent(&harness::tcp_proxy::drop_replies) == 0);
    }
    SECTION("everything is five seconds late, and nobody waits that long") {
        CHECK(try_during(
                  with, [&] { with.proxy.delay(std::chrono::seconds{5}); },
                  [&] { with.proxy.delay(std::chrono::milliseconds{0}); }) == 0);
    }
    CHECK(try_in_peace(with) == trial_count);
}

// `far` waits for longer than that.
inline void check_late_answers(const two_ways& with) {
    CHECK(try_in_peace(with) == trial_count); // opens the connections
    const auto began = std::chrono::steady_clock::now();
    CHECK(try_during(
              with, [&] { with.proxy.delay(std::chrono::milliseconds{2500}); }, // each way
              [&] { with.proxy.delay(std::chrono::milliseconds{0}); }) == trial_count);
    CHECK(std::chrono::steady_clock::now() - began >= std::chrono::seconds{5});
}

// One at a time: the server has applied each of them.
inline void check_truncated_replies(const two_ways& with) {
    for (const std::size_t bytes : {0u, 3u}) {
        for (int i = 0; i < trial_count; ++i) {
            // Twice, and in peace first: a connection may have questions of its own before the first call of a kind.
            for (const bool cut : {false, true}) {
                const auto one = std::move(trials::all(with)[static_cast<std::size_t>(i)]);
                INFO(one->name() << ", " << bytes << " bytes");
                one->arrange();
                const int before = with.proxy.truncated();
                if (cut) with.proxy.truncate_next_reply(bytes);
                const auto answer = one->call();
                CHECK(with.proxy.truncated() == before + (cut ? 1 : 0));
                INFO((answer ? "answered" : answer.error().message));
                if (!answer) CHECK((cut && answer.error().code == errc::unknown_outcome));
                CHECK(one->right);
                one->check(answer.has_value());
            }
        }
    }
    CHECK(try_in_peace(with) == trial_count);
}

} // namespace holdfast::test
