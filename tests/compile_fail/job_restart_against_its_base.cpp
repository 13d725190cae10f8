// expect: this job's options.restart differs from its restart_rule
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct base : coded {
    static constexpr restart restart_rule = restart::allowed;
};
struct bad : base {
    static constexpr job_options options{.name = "bad", .restart = restart::never};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
