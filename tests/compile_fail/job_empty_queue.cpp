// expect: a job's queue has a name
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .queue = ""};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
