#include "memory_store.hpp"

#include <concepts>

namespace holdfast {

// What makes an answer inside a unit of work the same at its commit.
static bool operator==(const enqueued& a, const enqueued& b) {
    return a.id == b.id && a.created == b.created;
}

} // namespace holdfast
