// expect: an event needs a name
#include "event_support.hpp"

using namespace holdfast;

struct bad : coded {
    static constexpr event_options options{};
};
void handle(bad) {}

const auto consumer = event_consumer_of<bad>("billing", &handle);
