// A small Redis cluster of the tests' own: three masters on free ports of 127.0.0.1, a third of the slots each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "harness/redis_server.hpp"

namespace holdfast::harness {

// One thread at a time. Whatever fails throws std::runtime_error.
class redis_cluster {
public:
    static constexpr std::size_t size = 3;

    redis_cluster(); // until every node knows that the cluster is whole

    const redis_server& node(std::size_t number) const { return *nodes_.at(number); }
    redis_server& node(std::size_t number) { return *nodes_.at(number); }
    // All nodes.
    std::string url() const;

    // Of the node that has the slot of keys with this hash tag.
    std::size_t owner_of(const std::string& tag) const;
    int slot_of(const std::string& tag) const;
    // The steps of a move of one slot: announced, then the keys go over, then every node knows.
    void announce_move(int slot, std::size_t from, std::size_t to) const;
    void move_keys(int slot, std::size_t from, std::size_t to) const;
    void conclude_move(int slot, std::size_t to) const;

private:
    std::array<std::unique_ptr<redis_server>, size> nodes_;
    std::array<std::string, size> names_;
};

} // namespace holdfast::harness
