// expect: a job declares its options
#include "job_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

struct bad : coded {};
void handle(bad) {}

const auto kind = job_type_of<bad>(&handle);
