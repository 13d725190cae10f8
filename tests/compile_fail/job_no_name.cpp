// expect: a job needs a name
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.queue = "mail"};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
