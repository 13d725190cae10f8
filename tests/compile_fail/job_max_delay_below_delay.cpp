// expect: a job's max_delay is shorter than its delay
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .retry = {.delay = 1min, .max_delay = 1s}};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
