// The parts that a store may offer, by name: a host may take each from another store.
#pragma once

#include <array>
#include <string_view>

#include <holdfast/store.hpp>

namespace holdfast {

enum class facet : unsigned char { jobs, idempotency, locks, outbox };

inline constexpr std::array all_facets = {facet::jobs, facet::idempotency, facet::locks, facet::outbox};

// Also what configurations call it.
constexpr std::string_view to_text(facet f) noexcept {
    switch (f) {
    case facet::jobs: return "jobs";
    case facet::idempotency: return "idempotency";
    case facet::locks: return "locks";
    case facet::outbox: return "outbox";
    }
    return "unknown";
}

inline bool offers(store& s, facet f) noexcept {
    switch (f) {
    case facet::jobs: return s.jobs() != nullptr;
    case facet::idempotency: return s.idempotency() != nullptr;
    case facet::locks: return s.locks() != nullptr;
    case facet::outbox: return s.outbox() != nullptr;
    }
    return false;
}

} // namespace holdfast
