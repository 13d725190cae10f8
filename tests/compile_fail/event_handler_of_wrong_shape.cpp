// expect: a consumer takes the event, and optionally, in this order, a unit_of_work& and an event_context& or a
#include "event_support.hpp"

using namespace holdfast;

struct bad : coded {
    static constexpr event_options options{.name = "bad"};
};
void handle(bad, event_context&, unit_of_work&) {}

const auto consumer = event_consumer_of<bad>("billing", &handle);
