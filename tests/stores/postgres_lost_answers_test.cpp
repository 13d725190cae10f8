// The server has applied a call, and its answer never comes: what is known then, and what is not. Never a blind retry.
#include <chrono>
#include <thread>

#include "harness/tcp_proxy.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using kind = settlement::kind;

namespace {

// A store whose way to the server loses answers, beside one whose way is good. It has one connection, and what it enqueues
// is due later, so that no answer but that of a call meets the proxy.
struct lossy_desk : test::postgres::desk {
    lossy_desk() {
        auto far_with = with;
        const std::string port = ":" + std::to_string(server.port());
        for (auto& [key, value] : far_with)
            if (key == "url") value.replace(value.find(port), port.size(), ":" + std::to_string(proxy.port()));
        far_with.emplace_back("connections", "1");
        far = test::postgres::open(on, far_with);
        await(far->prepare());
        await(far->jobs()->enqueue({later()})); // knows its queue from now on
    }

    // The answer to what is called next is cut off after that many bytes. `before` is a call like it: statements are
    // prepared in their session, which has answers of its own.
    template <class T>
    void lose_next(task<result<T>> before, std::size_t bytes = 0) {
        (void)attempt(std::move(before));
        lost = proxy.truncated() + 1;
        proxy.truncate_next_reply(bytes);
    }
    bool was_lost() const { return proxy.truncated() == lost; }

    new_job later() {
        new_job made = job();
        made.when = due::after(1h);
        return made;
    }
    claimed_job claimed(std::optional<duration> keep_for = {}) {
        new_job made = job();
        made.keep_for = keep_for;
        await(jobs().enqueue({std::move(made)}));
        return claim_one();
    }
    result<std::vector<settled>> settle_far(const job_lease& held, kind how = kind::succeed) {
        const settlement one[] = {{&held, how, {}, {}, {}}};
        return attempt(far->jobs()->settle(one));
    }
    // Settling something that is long over does what settling does.
    task<result<std::vector<settled>>> settle_nothing() { return far->jobs()->settle(over_); }

    harness::tcp_proxy proxy{server.port()};
    std::unique_ptr<store> far;
    int lost = 0;

private:
    const job_lease nobodys_{to_text(identifier_source().next()), 1};
    const settlement over_[1] = {{&nobodys_, kind::succeed, {}, {}, {}}};
};

} // namespace

TEST_CASE("postgres: an enqueue whose answer was lost is read back, and counts as created") {
    NEEDS_POSTGRES();
    lossy_desk d;
    for (const std::size_t bytes : {0u, 3u}) {
        const new_job one = d.later();
        d.lose_next(d.far->jobs()->enqueue({d.later()}), bytes);
        const auto answer = d.await(d.far->jobs()->enqueue({one}));
        CHECK(d.was_lost());
        CHECK(answer == std::vector<enqueued>{{one.id, true}});
        CHECK(d.state_of(one.id) == job_state::scheduled);
    }
    // Many, and one of them was there before.
    const new_job there = d.later();
    d.await(d.jobs().enqueue({there}));
    const std::vector<new_job> all = {d.later(), there, d.later()};
    d.lose_next(d.far->jobs()->enqueue({d.later(), d.later()}));
    const auto answers = d.await(d.far->jobs()->enqueue(all));
    CHECK(d.was_lost());
    REQUIRE(answers.size() == 3);
    CHECK(answers[0] == enqueued{all[0].id, true});
    CHECK(answers[2] == enqueued{all[2].id, true});
    CHECK(d.sql("SELECT count(*) FROM " + d.space + ".jobs") == "10");
}

TEST_CASE("postgres: an enqueue of a job that may be done and forgotten meanwhile is unknown, and is not made twice") {
    NEEDS_POSTGRES();
    lossy_desk d;
    new_job kept_not = d.later();
    kept_not.keep_for = 0s;
    d.lose_next(d.far->jobs()->enqueue({d.later()}));
    CHECK(d.await(d.far->jobs()->enqueue({kept_not})).at(0).created); // it is there
    CHECK(d.was_lost());

    // The answer is lost, and before anybody reads back the job is done. A trigger of the test's does that at once.
    d.sql("CREATE FUNCTION " + d.space + ".at_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM " +
          d.space + ".jobs WHERE id = NEW.id; RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER at_once AFTER INSERT ON " +
          d.space + ".jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + d.space + ".at_once()");
    new_job gone = d.later();
    gone.keep_for = 0s;
    d.lose_next(d.far->jobs()->enqueue({d.later()}));
    const error unknown = d.refusal(d.far->jobs()->enqueue({gone}));
    CHECK(d.was_lost());
    CHECK(unknown.code == errc::unknown_outcome);
}

TEST_CASE("postgres: a settlement whose answer was lost is read back by its token") {
    NEEDS_POSTGRES();
    lossy_desk d;
    struct expected {
        kind how;
        job_state now;
    };
    for (const auto& [how, now] : {expected{kind::succeed, job_state::succeeded},
                                   {kind::fail, job_state::failed},
                                   {kind::dead_letter, job_state::dead_letter},
                                   {kind::cancel, job_state::cancelled},
                                   {kind::retry, job_state::waiting_retry},
                                   {kind::release, job_state::pending}}) {
        INFO("how " << static_cast<int>(how));
        const claimed_job mine = d.claimed();
        const settlement one[] = {{&mine.lease, how, due::after(1h), {}, {}}};
        d.lose_next(d.settle_nothing());
        const auto answers = d.await(d.far->jobs()->settle(one));
        CHECK(d.was_lost());
        CHECK(answers.at(0) == settled{write_answer::done, now});
        const job_view after = d.view(mine.id);
        CHECK(after.state == now);
        CHECK(after.history.size() == 1);
        d.sql("DELETE FROM " + d.space + ".jobs");
    }
    // What somebody else has ended is not mistaken for ours.
    const claimed_job late = d.claimed();
    CHECK(d.settle(late.lease, kind::release).answer == write_answer::done);
    const claimed_job other = d.claim_one();
    CHECK(d.settle(other.lease).answer == write_answer::done);
    d.lose_next(d.settle_nothing());
    CHECK(d.settle_far(late.lease).value().at(0).answer == write_answer::stale);
    CHECK(d.was_lost());
}

TEST_CASE("postgres: a settlement that leaves no job behind is unknown when its answer was lost, and not called gone") {
    NEEDS_POSTGRES();
    lossy_desk d;
    const claimed_job mine = d.claimed(0s);
    d.lose_next(d.settle_nothing());
    const auto answer = d.settle_far(mine.lease);
    CHECK(d.was_lost());
    REQUIRE(!answer);
    CHECK(answer.error().code == errc::unknown_outcome);
    CHECK_THAT(answer.error().message, ContainsSubstring("forgotten"));
    CHECK(std::holds_alternative<job_absence>(d.await(d.jobs().get(mine.id))));
    // Others of the batch are settled, once.
    const claimed_job first = d.claimed(0s);
    const claimed_job kept = d.claimed();
    const settlement both[] = {{&first.lease, kind::succeed, {}, {}, {}}, {&kept.lease, kind::succeed, {}, {}, {}}};
    d.lose_next(d.settle_nothing());
    CHECK(d.refusal(d.far->jobs()->settle(both)).code == errc::unknown_outcome);
    CHECK(d.was_lost());
    CHECK(d.state_of(kept.id) == job_state::succeeded);
    CHECK(d.view(kept.id).history.size() == 1);
    // One that was refused before, and is still there, is no such case.
    const claimed_job stale = d.claimed(0s);
    CHECK(d.settle(stale.lease, kind::release).answer == write_answer::done);
    d.lose_next(d.settle_nothing());
    CHECK(d.settle_far(stale.lease).value().at(0).answer == write_answer::stale);
    CHECK(d.was_lost());
}

TEST_CASE("postgres: the commit of a unit of work whose answer was lost is unknown, and there as a whole") {
    NEEDS_POSTGRES();
    lossy_desk d;
    const claimed_job mine = d.claimed();
    const new_job next = d.later();
    const settlement done[] = {d.success(mine)};
    const auto unit = d.await(d.far->begin());
    d.await(d.far->jobs()->settle(done, unit.get()));
    d.await(d.far->jobs()->enqueue({next}, unit.get()));
    d.await(d.far->outbox()->append({{d.ids.next(), "topic", "k", {}, {}}}, unit.get()));
    CHECK(d.await(d.far->idempotency()->try_claim("k", 1h, unit.get())));
    d.proxy.truncate_next_reply(0);
    CHECK(d.refusal(unit->commit()).code == errc::unknown_outcome);
    CHECK(d.proxy.truncated() == 1);
    CHECK(d.state_of(mine.id) == job_state::succeeded);
    CHECK(d.state_of(next.id) == job_state::scheduled);
    CHECK(d.await(d.kept->outbox()->unsent()) == 1);
    CHECK_FALSE(d.await(d.kept->idempotency()->try_claim("k", 1h)));
    CHECK(d.refusal(unit->commit()).code == errc::invalid_argument);
    CHECK(d.await(d.far->jobs()->enqueue({d.later()})).at(0).created);
}

TEST_CASE("postgres: a claim whose answer was lost is unknown, and the job comes back when its lease has ended") {
    NEEDS_POSTGRES();
    lossy_desk d;
    const claim_request request{{"default"}, 1, 1h, "w"};
    d.lose_next(d.far->jobs()->claim(request));
    const identifier id = d.add();
    CHECK(d.refusal(d.far->jobs()->claim(request)).code == errc::unknown_outcome);
    CHECK(d.was_lost());
    CHECK(d.claim(1).empty()); // it was not claimed once more
    CHECK(d.state_of(id) == job_state::processing);
    d.sql("UPDATE " + d.space + ".jobs SET leased_until = 0 WHERE state = 2");
    CHECK(d.await(d.far->jobs()->recover_stale(10)).requeued == 1);
    const std::uint64_t lost = d.view(id).history.at(0).token;
    const auto again = d.await(d.far->jobs()->claim(request));
    REQUIRE(again.size() == 1);
    CHECK(again[0].lease.token() > lost);
}

TEST_CASE("postgres: a lock, a key and a message whose answer was lost are unknown, and have one owner at the most") {
    NEEDS_POSTGRES();
    lossy_desk d;
    SECTION("lock") {
        d.lose_next(d.far->locks()->try_acquire("other"));
        CHECK(d.refusal(d.far->locks()->try_acquire("door", 1h)).code == errc::unknown_outcome);
        CHECK(d.was_lost());
        CHECK_FALSE(d.await(d.kept->locks()->try_acquire("door")).has_value());
        const auto before = std::stoull(d.sql("SELECT token FROM " + d.space + ".locks WHERE resource = 'door'"));
        d.sql("UPDATE " + d.space + ".locks SET until = 0");
        const auto next = d.await(d.far->locks()->try_acquire("door"));
        REQUIRE(next.has_value());
        CHECK(next->token() > before);
    }
    SECTION("key, full form") {
        const begin_request request{"k", "f", 1h, 2h};
        d.lose_next(d.far->idempotency()->begin({"other", "f", 1h, 2h}));
        CHECK(d.refusal(d.far->idempotency()->begin(request)).code == errc::unknown_outcome);
        CHECK(d.was_lost());
        CHECK(std::holds_alternative<idempotency_in_progress>(d.await(d.kept->idempotency()->begin(request))));
        d.sql("UPDATE " + d.space + ".idempotency SET leased_until = 0");
        const auto next = d.await(d.far->idempotency()->begin(request));
        REQUIRE(std::holds_alternative<idempotency_started>(next));
        CHECK(std::get<idempotency_started>(next).taken_over);
    }
    SECTION("key, short form") {
        d.lose_next(d.far->idempotency()->try_claim("other"));
        CHECK(d.refusal(d.far->idempotency()->try_claim("k")).code == errc::unknown_outcome);
        CHECK(d.was_lost());
        CHECK_FALSE(d.await(d.kept->idempotency()->try_claim("k")));
    }
    SECTION("completed key") {
        auto began = d.await(d.kept->idempotency()->begin({"k", "f", 1h, 2h}));
        const auto& mine = std::get<idempotency_started>(began).lease;
        auto other = d.await(d.kept->idempotency()->begin({"other", "f", 1h, 2h}));
        d.lose_next(d.far->idempotency()->complete(std::get<idempotency_started>(other).lease, {}));
        d.await(d.far->idempotency()->complete(mine, {"t", 1, "", "answer"}));
        CHECK(d.was_lost());
        const auto stored = d.await(d.kept->idempotency()->begin({"k", "f", 1h, 2h}));
        CHECK(std::get<idempotency_completed>(stored).result.body == "answer");
    }
    SECTION("message") {
        d.lose_next(d.far->outbox()->lease_batch(1, 1h, "r"));
        d.await(d.kept->outbox()->append({{d.ids.next(), "topic", "k", {}, {}}}));
        CHECK(d.refusal(d.far->outbox()->lease_batch(1, 1h, "r")).code == errc::unknown_outcome);
        CHECK(d.was_lost());
        CHECK(d.await(d.kept->outbox()->lease_batch(1, 1h, "r")).empty());
        CHECK(d.await(d.kept->outbox()->unsent()) == 1);
        d.sql("UPDATE " + d.space + ".outbox SET not_before = 0");
        CHECK(d.await(d.far->outbox()->lease_batch(1, 1h, "r")).size() == 1);
    }
}
