// expect: restart::probe and a probe function go together
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .restart = restart::probe};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
