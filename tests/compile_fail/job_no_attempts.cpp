// expect: a job's attempts may be 1 to 100
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .attempts = 0};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
