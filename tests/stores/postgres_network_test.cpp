// The list of what a network may do, on PostgreSQL.
#include "stores/network_cases.hpp"
#include "stores/postgres_support.hpp"

using namespace holdfast;
using test::postgres::desk;

namespace {

struct far_desk : desk {
    explicit far_desk(const std::string& statement_timeout = "200ms", const std::string& connect_timeout = "2") {
        auto far_with = with;
        const std::string port = ":" + std::to_string(server.port());
        for (auto& [key, value] : far_with)
            if (key == "url") {
                value.replace(value.find(port), port.size(), ":" + std::to_string(proxy.port()));
                value += (value.find('?') == std::string::npos ? "?connect_timeout=" : "&connect_timeout=") +
                         connect_timeout;
            }
        far_with.emplace_back("connections", "16");
        far_with.emplace_back("statement_timeout", statement_timeout);
        far = test::postgres::open(on, far_with);
        await(far->prepare());
    }
    test::two_ways ways() { return {*this, *far, proxy}; }

    harness::tcp_proxy proxy{server.port()};
    std::unique_ptr<store> far;
};

} // namespace

TEST_CASE("postgres: whatever is under way when connections are cut, nothing acknowledged is lost or has two owners") {
    NEEDS_POSTGRES();
    far_desk d;
    test::check_cut_connections(d.ways());
}

TEST_CASE("postgres: a network that loses one direction, or is too slow, is given up in time, and nothing is lost") {
    NEEDS_POSTGRES();
    far_desk d;
    test::check_lost_ways(d.ways());
}

TEST_CASE("postgres: answers that are five seconds late are waited for") {
    NEEDS_POSTGRES();
    far_desk d("30s", "30"); // a connection may have to be opened meanwhile
    test::check_late_answers(d.ways());
}

TEST_CASE("postgres: replies cut short after the server applied the call lose nothing and double nothing") {
    NEEDS_POSTGRES();
    far_desk d;
    test::check_truncated_replies(d.ways());
}
