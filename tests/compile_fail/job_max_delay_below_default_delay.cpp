// expect: a job's max_delay is shorter than its delay, which is 60s unless .delay is given
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .retry = {.max_delay = 10s}};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
