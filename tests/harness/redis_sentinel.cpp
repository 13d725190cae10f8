#include "harness/redis_sentinel.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/free_port.hpp"

namespace holdfast::harness {

using namespace std::chrono_literals;

namespace {

template <class Condition>
void wait_until(Condition holds, const char* what) {
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error(what);
        std::this_thread::sleep_for(20ms);
    }
}

redis_options beside(const redis_server& master) {
    return {
        .arguments = {"--replicaof", "127.0.0.1", std::to_string(master.port()), "--repl-diskless-sync-delay", "0"}};
}

} // namespace

redis_sentinels::redis_sentinels()
    : master_({.arguments = {"--repl-diskless-sync-delay", "0"}}), replica_(beside(master_)) {
    const auto follows = [&] {
        const auto lines = master_.lines("INFO replication");
        return std::ranges::any_of(lines, [](const std::string& l) { return l.find("state=online") != l.npos; });
    };
    wait_until(follows, "the replica does not follow");
    for (int i = 0; i < 2; ++i) launch(free_port());
    for (const std::uint16_t each : ports_)
        wait_until(
            [&] {
                const auto known = redis_lines(each, "SENTINEL REPLICAS desk");
                const auto others = redis_lines(each, "SENTINEL SENTINELS desk");
                return known && !known->empty() && others && !others->empty();
            },
            "a sentinel does not know the others");
}

void redis_sentinels::launch(std::uint16_t port) {
    const auto file = folder_ / ("sentinel" + std::to_string(ports_.size()) + ".conf");
    std::ofstream(file) << "port " << port << "\nbind 127.0.0.1\ndir " << folder_.path().string()
                        << "\nsentinel monitor desk 127.0.0.1 " << master_.port()
                        << " 1\nsentinel down-after-milliseconds desk 500\nsentinel failover-timeout desk 3000\n";
    command sentinel;
    sentinel.arguments = {redis_binary().value().string(), file.string(), "--sentinel"};
    sentinel.output = folder_ / "log";
    sentinels_.push_back(std::make_unique<child_process>(sentinel));
    ports_.push_back(port);
}

std::string redis_sentinels::url() const {
    std::string text = "redis-sentinel://";
    for (const std::uint16_t each : ports_) text += "127.0.0.1:" + std::to_string(each) + ",";
    text.back() = '/';
    return text + "desk";
}

void redis_sentinels::fail_over() const {
    const auto begun = [&] {
        const auto lines = redis_lines(ports_.front(), "SENTINEL FAILOVER desk");
        return lines && lines->at(0) == "+OK"; // not before the replica is known to be good
    };
    wait_until(begun, "the sentinels refuse to fail over");
    wait_for_failover();
}

void redis_sentinels::wait_for_failover() const {
    const std::string wanted = std::to_string(replica_.port());
    for (const std::uint16_t each : ports_)
        wait_until(
            [&] {
                const auto lines = redis_lines(each, "SENTINEL GET-MASTER-ADDR-BY-NAME desk");
                return lines && lines->size() == 2 && lines->at(1) == wanted;
            },
            "the sentinels do not fail over");
}

} // namespace holdfast::harness
