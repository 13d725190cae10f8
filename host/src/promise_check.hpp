// Whether a store, or what carries events, can keep what was asked for. Pure.
#pragma once

#include <optional>
#include <string>

#include <holdfast/event_transport.hpp>
#include <holdfast/facet.hpp>
#include <holdfast/promises.hpp>

namespace holdfast::detail {

// The first promise that the store cannot keep for the facet, as a configuration writes it: shared = true.
std::optional<std::string> first_broken(const promises& asked, const store_capabilities& has, facet of);
std::optional<std::string> first_broken(const promises& asked, const transport_capabilities& has);

// "jobs, locks", or "nothing".
std::string facets_of(store& s);

} // namespace holdfast::detail
