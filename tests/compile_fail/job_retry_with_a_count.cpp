// expect: a job's .retry has no max_attempts
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .retry = {.max_attempts = 3}};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
