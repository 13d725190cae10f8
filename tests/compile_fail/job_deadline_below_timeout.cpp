// expect: a job's hard_deadline is shorter than its timeout
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .timeout = 1min, .hard_deadline = 1s};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
