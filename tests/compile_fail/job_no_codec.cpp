// expect: a job needs a codec
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad {
    static constexpr job_options options{.name = "bad"};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
