// expect: a job's retry intervals already say how long: drop .delay and .backoff
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .retry = {.delay = 1s, .intervals = {1s, 5s}}};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
