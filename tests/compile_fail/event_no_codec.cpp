// expect: an event that is consumed needs a codec
#include "event_support.hpp"

using namespace holdfast;

struct bad {
    static constexpr event_options options{.name = "bad"};
};
void handle(bad) {}

const auto consumer = event_consumer_of<bad>("billing", &handle);
