// expect: an event declares its options
#include "event_support.hpp"

using namespace holdfast;

struct bad : coded {};
void handle(bad) {}

const auto consumer = event_consumer_of<bad>("billing", &handle);
