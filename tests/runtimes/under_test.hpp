// The runtime that the tests of this folder are about; each is compiled once for each runtime.
#pragma once

#if defined(HOLDFAST_TEST_FOLLY)
#include <holdfast/folly_runtime.hpp>
#else
#include <holdfast/asio_runtime.hpp>
#endif

namespace holdfast::testing {

#if defined(HOLDFAST_TEST_FOLLY)
using runtime_under_test = folly_runtime;
#else
using runtime_under_test = asio_runtime;
#endif

} // namespace holdfast::testing
