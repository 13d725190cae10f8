// What a program needs its stores to keep. A host does not start on a store whose capabilities fall short.
#pragma once

#include <holdfast/store.hpp>

namespace holdfast {

struct promises {
    survives writes_survive = survives::nothing; // at least
    bool shared = false;                         // with other processes
    bool units_of_work = false;                  // store::begin(); locks have no part in it
    bool joins_transactions = false;             // store::join(); locks have no part in it

    bool operator==(const promises&) const = default;
};

} // namespace holdfast
