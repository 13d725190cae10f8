// What a lease of this transport names: a number of a subscription, which is never used again, and a position. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/event_transport.hpp>
#include <holdfast/postgres/wire.hpp>

namespace holdfast::events_postgres {

struct lease_place {
    std::int64_t subscription = 0;
    std::int64_t position = 0;
    std::int64_t token = 0;
    std::size_t from = 0; // index of the call's argument
};

inline delivery_lease make_lease(std::int64_t subscription, std::int64_t position, std::int64_t token) {
    return {std::to_string(subscription) + ":" + std::to_string(position), static_cast<std::uint64_t>(token)};
}

// Nothing for a subject that this transport cannot have given out.
inline std::optional<lease_place> place_of(const delivery_lease& held, std::size_t from) {
    const std::string_view text = held.subject();
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto subscription = postgres::decode_integer(text.substr(0, colon));
    const auto position = postgres::decode_integer(text.substr(colon + 1));
    if (!subscription || !position) return std::nullopt;
    return lease_place{*subscription, *position, static_cast<std::int64_t>(held.token()), from};
}

// Sorted, so that rows are locked in one order by everybody. lease_of(argument) gives a pointer; what is null or of another
// transport is left out.
template <class Range, class Pick>
std::vector<lease_place> places_of(const Range& arguments, Pick lease_of) {
    std::vector<lease_place> all;
    for (std::size_t i = 0; i < std::size(arguments); ++i)
        if (const delivery_lease* held = lease_of(arguments[i]))
            if (const auto place = place_of(*held, i)) all.push_back(*place);
    std::ranges::sort(all, {}, [](const lease_place& p) { return std::tuple(p.subscription, p.position, p.from); });
    return all;
}

} // namespace holdfast::events_postgres
