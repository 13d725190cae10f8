// expect: a job's handler returns void or result<void>, or a task of one of them
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad"};
};
int handle(bad) {
    return 1;
}

const auto kind = job_type_of<bad>(&handle);
