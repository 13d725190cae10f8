// expect: a job's timeout must be longer than 0
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .timeout = 0s};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
