// Batches of leases on their way to the server: sorted by what they lease, each once, so that rows are locked in one
// order by everybody. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/identifier.hpp>
#include <holdfast/outbox_store.hpp>

namespace holdfast::postgres {

struct lease_batch {
    struct entry {
        identifier id;
        std::uint64_t token = 0;
        std::size_t from = 0; // index of the call's argument
    };
    std::vector<entry> sent;                                // sorted by id
    std::vector<std::size_t> never;                         // subjects that this store cannot have given out
    std::vector<std::pair<std::size_t, std::size_t>> twice; // argument, and the index in `sent` of the first like it
};

// lease_of(argument) gives the lease.
template <class Range, class Pick>
lease_batch make_batch(const Range& arguments, Pick lease_of) {
    lease_batch batch;
    std::vector<lease_batch::entry> all;
    for (std::size_t i = 0; i < std::size(arguments); ++i) {
        const auto& held = lease_of(arguments[i]);
        if (const auto id = parse_identifier(held.subject())) all.push_back({*id, held.token(), i});
        else batch.never.push_back(i);
    }
    std::ranges::sort(all, {}, [](const lease_batch::entry& e) { return std::pair(e.id, e.from); });
    for (const auto& each : all) {
        const auto same = [&](const lease_batch::entry& s) { return s.id == each.id && s.token == each.token; };
        std::size_t first = batch.sent.size();
        for (std::size_t i = batch.sent.size(); i > 0 && batch.sent[i - 1].id == each.id; --i)
            if (same(batch.sent[i - 1])) first = i - 1;
        if (first < batch.sent.size()) batch.twice.emplace_back(each.from, first);
        else batch.sent.push_back(each);
    }
    return batch;
}

} // namespace holdfast::postgres
