// The list of what a network may do, on Redis.
#include "stores/network_cases.hpp"
#include "stores/redis_support.hpp"

using namespace holdfast;
using test::redis::desk;

namespace {

struct far_desk {
    explicit far_desk(const std::string& timeout = "500ms") {
        far = test::redis::open(near.on, {{"url", "redis://127.0.0.1:" + std::to_string(proxy.port())},
                                          {"namespace", near.space()},
                                          {"connections", "16"},
                                          {"timeout", timeout}});
        near.await(far->prepare());
    }

    test::two_ways ways() { return {near, *far, proxy}; }

    harness::redis_server server;
    desk near{server.url()};
    harness::tcp_proxy proxy{server.port()};
    std::unique_ptr<store> far;
};

} // namespace

TEST_CASE("redis: whatever is under way when connections are cut, nothing acknowledged is lost or has two owners") {
    NEEDS_REDIS();
    far_desk d;
    test::check_cut_connections(d.ways());
}

TEST_CASE("redis: a network that loses one direction, or is too slow, is given up in time, and nothing is lost") {
    NEEDS_REDIS();
    far_desk d;
    test::check_lost_ways(d.ways());
}

TEST_CASE("redis: answers that are five seconds late are waited for") {
    NEEDS_REDIS();
    far_desk d("20s");
    test::check_late_answers(d.ways());
}

TEST_CASE("redis: replies cut short after the server applied the call lose nothing and double nothing") {
    NEEDS_REDIS();
    far_desk d;
    test::check_truncated_replies(d.ways());
}
