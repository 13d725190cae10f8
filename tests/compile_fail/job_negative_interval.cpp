// expect: one of a job's retry intervals is negative
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .retry = {.intervals = {1s, -1s}}};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
