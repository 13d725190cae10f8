// What has been kept for long enough goes, however much it is and whoever is there.
#include <atomic>
#include <chrono>
#include <thread>

#include "stores/postgres_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using test::postgres::desk;

namespace {

// An Asio runtime whose clock can be put forward.
class hurried_runtime final : public runtime {
public:
    void pass(duration d) { ahead_ = ahead_.load() + d; }

    std::string_view name() const noexcept override { return on_.name(); }
    time_point now() const noexcept override { return on_.now() + ahead_.load(); }
    bool post(work& w) noexcept override { return on_.post(w); }
    bool post_blocking(work& w) noexcept override { return on_.post_blocking(w); }
    bool arm(timer& t, time_point due) noexcept override { return on_.arm(t, due - ahead_.load()); }
    bool cancel(timer& t) noexcept override { return on_.cancel(t); }
    void stop() noexcept override { on_.stop(); }
    bool stopped() const noexcept override { return on_.stopped(); }

private:
    asio_runtime on_{asio_options{}};
    std::atomic<duration> ahead_ = duration::zero();
};

} // namespace

TEST_CASE("postgres: one recovery forgets all that has been kept for long enough") {
    NEEDS_POSTGRES();
    desk d(test::postgres::shared_server(), {{"keep_succeeded", "1ms"}, {"keep_tombstones", "1ms"}});
    d.add(3500);
    const auto mine = d.claim(3500);
    std::vector<settlement> all;
    for (const claimed_job& each : mine) all.push_back(d.success(each));
    d.await(d.jobs().settle(all));
    std::this_thread::sleep_for(2ms);
    d.await(d.jobs().recover_stale(10));
    CHECK(d.sql("SELECT count(*) FROM " + d.space + ".jobs") == "0");
    std::this_thread::sleep_for(2ms);
    d.await(d.jobs().recover_stale(10));
    CHECK(d.sql("SELECT count(*) FROM " + d.space + ".forgotten_jobs") == "0");
}

TEST_CASE("postgres: keys, locks and what was received are forgotten where no job worker is") {
    NEEDS_POSTGRES();
    desk d;
    hurried_runtime on;
    const auto kept = test::postgres::open(on, d.with);
    REQUIRE(sync_wait(on, kept->prepare()));
    for (const std::string& each :
         {"claims SELECT decode(md5(n::text), 'hex'), 1", "locks SELECT decode(md5(n::text), 'hex'), n, 1",
          "inbox SELECT 'c', md5(n::text)::uuid, 1",
          "idempotency (key, token, leased_until, until, fingerprint) SELECT decode(md5(n::text), 'hex'), n, 1, 1, ''"})
        d.sql("INSERT INTO " + d.space + "." + each + " FROM generate_series(1, 2500) n");
    const auto left = [&] {
        std::string sum = "SELECT 0";
        for (const std::string table : {"claims", "locks", "inbox", "idempotency"})
            sum += " + (SELECT count(*) FROM " + d.space + "." + table + " WHERE until = 1)";
        return d.sql(sum);
    };
    CHECK(left() == "10000");
    const auto use = GENERATE(0, 1, 2, 3);
    on.pass(1min);
    for (int i = 0; i < 2000 && left() != "0"; ++i) {
        const std::string key = std::to_string(i);
        if (use == 0) CHECK(sync_wait(on, kept->idempotency()->try_claim(key, 1h)));
        if (use == 1) CHECK(sync_wait(on, kept->idempotency()->begin({key, "f", 1h, 1h})));
        if (use == 2) CHECK(sync_wait(on, kept->outbox()->receive("consumer", d.ids.next(), 1h)));
        if (use == 3) CHECK(sync_wait(on, kept->locks()->try_acquire(key, 1h)));
        std::this_thread::sleep_for(1ms);
    }
    CHECK(left() == "0");
}
