// expect: a job's rule has no count of its own
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {
    static constexpr job_options options{.name = "bad", .rules = {retry_on(errc::unavailable, 5)}};
};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
