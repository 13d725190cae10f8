#pragma once

#include "lab.hpp"

namespace holdfast::conformance {

// Case 45.
void hedging(lab& l);

} // namespace holdfast::conformance
