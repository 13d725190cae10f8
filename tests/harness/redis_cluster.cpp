#include "harness/redis_cluster.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "harness/free_port.hpp"

namespace holdfast::harness {

using namespace std::chrono_literals;

namespace {

constexpr int slots = 16384;

void insist(const redis_server& at, const std::string& command) {
    const std::string answer = at.tell(command);
    if (answer.starts_with('-')) throw std::runtime_error(command + ": " + answer);
}

} // namespace

redis_cluster::redis_cluster() {
    std::array<std::string, size> buses;
    for (std::size_t i = 0; i < size; ++i) {
        buses[i] = std::to_string(free_port());
        nodes_[i] = std::make_unique<redis_server>(redis_options{
            .arguments = {"--cluster-enabled", "yes", "--cluster-port", buses[i], "--cluster-node-timeout", "2000"}});
        insist(*nodes_[i], "CLUSTER SET-CONFIG-EPOCH " + std::to_string(i + 1));
        const int first = static_cast<int>(i) * slots / static_cast<int>(size);
        const int last = static_cast<int>(i + 1) * slots / static_cast<int>(size) - 1;
        insist(*nodes_[i], "CLUSTER ADDSLOTSRANGE " + std::to_string(first) + " " + std::to_string(last));
        names_[i] = nodes_[i]->lines("CLUSTER MYID").at(0);
    }
    for (std::size_t i = 1; i < size; ++i)
        insist(*nodes_[0], "CLUSTER MEET 127.0.0.1 " + std::to_string(nodes_[i]->port()) + " " + buses[i]);
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    for (const auto& each : nodes_)
        while (each->lines("CLUSTER INFO").at(0) != "cluster_state:ok") {
            if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the cluster does not come up");
            std::this_thread::sleep_for(10ms);
        }
}

std::string redis_cluster::url() const {
    std::string text = "redis://";
    for (const auto& each : nodes_) text += "127.0.0.1:" + std::to_string(each->port()) + ",";
    text.back() = '/';
    return text + "0";
}

int redis_cluster::slot_of(const std::string& tag) const {
    return std::stoi(nodes_[0]->tell("CLUSTER KEYSLOT {" + tag + "}").substr(1));
}

std::size_t redis_cluster::owner_of(const std::string& tag) const {
    for (std::size_t i = 0; i < size; ++i)
        if (!nodes_[i]->tell("EXISTS {" + tag + "}").starts_with("-MOVED")) return i;
    throw std::runtime_error("no node has the slot of " + tag);
}

void redis_cluster::announce_move(int slot, std::size_t from, std::size_t to) const {
    const std::string one = "CLUSTER SETSLOT " + std::to_string(slot);
    insist(*nodes_.at(to), one + " IMPORTING " + names_.at(from));
    insist(*nodes_.at(from), one + " MIGRATING " + names_.at(to));
}

void redis_cluster::move_keys(int slot, std::size_t from, std::size_t to) const {
    const std::string some = "CLUSTER GETKEYSINSLOT " + std::to_string(slot) + " 100";
    const std::string target = "MIGRATE 127.0.0.1 " + std::to_string(nodes_.at(to)->port()) + " ";
    for (auto keys = nodes_.at(from)->lines(some); !keys.empty(); keys = nodes_.at(from)->lines(some))
        for (const std::string& each : keys) insist(*nodes_.at(from), target + each + " 0 5000");
}

void redis_cluster::conclude_move(int slot, std::size_t to) const {
    const std::string one = "CLUSTER SETSLOT " + std::to_string(slot) + " NODE " + names_.at(to);
    insist(*nodes_.at(to), one);
    for (const auto& each : nodes_) insist(*each, one);
}

} // namespace holdfast::harness
