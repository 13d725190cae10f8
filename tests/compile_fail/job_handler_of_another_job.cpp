// expect: a job's handler takes the job, and optionally a job_context& or a std::stop_token
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad"};
};
struct other : coded {};
void handle(other) {}

const auto kind = job_type_of<bad>(&handle);
