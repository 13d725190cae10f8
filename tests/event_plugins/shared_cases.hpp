// Cases that every transport with a server must pass, beyond the kit.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "catch.hpp"
#include "event_plugins/support.hpp"
#include "harness/tcp_proxy.hpp"

namespace holdfast::test {

// Until both ends know.
inline void cut(harness::tcp_proxy& proxy) {
    proxy.cut();
    for (int i = 0; i < 100 && proxy.connections() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
}

// What a restart of the server must not lose: delays, leases, dead letters, what is settled.
struct before_restart {
    explicit before_restart(event_desk& d) {
        using namespace std::chrono_literals;
        d.subscribe();
        for (const char* body : {"acknowledged", "later", "soon", "dead", "held", "open"}) d.add(body);
        auto got = d.receive(5);
        REQUIRE(got.size() == 5);
        CHECK(d.settle(got[0]) == write_answer::done);
        CHECK(d.settle(got[1], kind::redeliver, 1h) == write_answer::done);
        CHECK(d.settle(got[2], kind::redeliver, 1ms) == write_answer::done);
        CHECK(d.settle(got[3], kind::dead_letter) == write_answer::done);
        held.push_back(std::move(got[4]));
    }
    void check_after(event_desk& d) const {
        using namespace std::chrono_literals;
        const auto view = d.view();
        CHECK(view.waiting == 3);
        CHECK(view.leased == 1);
        CHECK(view.dead == 1);
        CHECK(view.acknowledged == 1);
        const auto open = d.receive();
        REQUIRE(bodies(open) == std::vector<std::string>{"soon", "open"});
        CHECK(open[0].redeliveries == 1);
        CHECK(open[0].calls == 1);
        CHECK(open[0].message.extra == headers{{"h", "v"}});
        CHECK(d.settle(held.front()) == write_answer::done);
        for (const delivery& each : open) CHECK(d.settle(each) == write_answer::done);
        CHECK(*d.await(d.kept->next_due("s")) > 50min);
        const auto dead = d.await(d.kept->dead_messages({}, 10));
        REQUIRE(dead.messages.size() == 1);
        CHECK(dead.messages[0].error.stack == "where");
        CHECK(dead.messages[0].message.what.body == "dead");
    }

    std::vector<delivery> held;
};

// Publishers of the same keys at once, and receivers at once: every message once, each key in the order of its positions,
// and what one publisher said of a key in the order in which it said it.
inline void check_crowd(event_desk& d, int publishers, int receivers, int each) {
    using namespace std::chrono_literals;
    d.subscribe();
    std::mutex mutex;
    std::map<std::string, std::vector<std::uint64_t>> positions; // by key, as they came
    std::map<std::string, std::vector<int>> numbers;             // by key and publisher
    std::atomic<int> left = publishers * each;
    std::atomic<bool> broken = false;
    const auto publish = [&](int who) {
        const auto mine = d.another();
        for (int i = 0; i < each; i += 2) {
            std::vector<envelope> batch;
            for (int k = i; k < i + 2; ++k)
                batch.push_back(
                    d.message(std::to_string(who) + ":" + std::to_string(k), "k" + std::to_string(k / 2 % 5)));
            if (!d.attempt(mine->publish(std::move(batch)))) broken = true;
        }
    };
    const auto receive = [&](int who) {
        const auto mine = d.another();
        while (left > 0 && !broken) {
            auto got = d.attempt(mine->receive("s", 1 + who * 7, 1min, "r" + std::to_string(who)));
            if (!got) {
                broken = true;
                return;
            }
            std::vector<delivery_settlement> done;
            for (const delivery& one : *got) {
                const std::lock_guard lock(mutex);
                positions[one.message.key].push_back(one.position);
                const std::string& body = one.message.what.body;
                const auto colon = body.find(':');
                numbers[one.message.key + "/" + body.substr(0, colon)].push_back(std::stoi(body.substr(colon + 1)));
                done.push_back(event_desk::how(one, kind::acknowledge));
            }
            if (done.empty()) continue;
            const auto answers = d.attempt(mine->settle(done));
            if (!answers) {
                broken = true;
                return;
            }
            for (const write_answer answer : *answers)
                if (answer != write_answer::done) broken = true;
            left -= static_cast<int>(done.size());
        }
    };
    {
        std::vector<std::jthread> crowd;
        for (int i = 0; i < publishers; ++i) crowd.emplace_back(publish, i);
        for (int i = 0; i < receivers; ++i) crowd.emplace_back(receive, i);
    }
    CHECK_FALSE(broken);
    CHECK(left == 0);
    for (const auto& [key, all] : positions) {
        INFO(key);
        CHECK(std::ranges::is_sorted(all));
    }
    for (const auto& [key, all] : numbers) {
        INFO(key);
        CHECK(std::ranges::is_sorted(all));
    }
    CHECK(d.view().acknowledged == static_cast<std::uint64_t>(publishers * each));
}

// Hints from another instance arrive well before anybody would poll.
inline void check_hints(event_desk& d) {
    using namespace std::chrono_literals;
    d.subscribe();
    const auto other = d.another();
    std::atomic<int> heard = 0;
    const auto watching = other->watch("s", [&] { ++heard; });
    REQUIRE(watching != nullptr);
    const auto wait_for = [&](auto condition) {
        for (int i = 0; i < 500 && !condition(); ++i) std::this_thread::sleep_for(10ms);
        return condition();
    };
    CHECK(wait_for([&] { return heard > 0; })); // from now on nothing is missed
    int before = heard;
    d.add("1", "k");
    CHECK(wait_for([&] { return heard > before; }));
    d.add("2", "k");
    const auto first = d.receive(1);
    std::this_thread::sleep_for(50ms);
    before = heard;
    CHECK(d.settle(first.at(0)) == write_answer::done); // lets the next of its key pass
    CHECK(wait_for([&] { return heard > before; }));
}

} // namespace holdfast::test
