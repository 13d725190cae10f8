// expect: a domain consumer takes the event, and optionally the publisher.s unit_of_work&
#include "event_support.hpp"

using namespace holdfast;

struct bad {
    static constexpr event_options options{.name = "bad"};
};
void handle(bad, event_context&) {}

const auto consumer = domain_consumer_of<bad>("stock", &handle);
