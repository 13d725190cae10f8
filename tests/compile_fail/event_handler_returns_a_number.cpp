// expect: a consumer returns void or result<void>, or a task of one of them
#include "event_support.hpp"

using namespace holdfast;

struct bad : coded {
    static constexpr event_options options{.name = "bad"};
};
int handle(bad) {
    return 1;
}

const auto consumer = event_consumer_of<bad>("billing", &handle);
