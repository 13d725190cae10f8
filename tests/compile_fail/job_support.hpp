// What the job cases share: a codec for every struct that derives from `coded`.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <holdfast/job_type.hpp>

struct coded {};

template <std::derived_from<coded> Job>
struct holdfast::codec<Job> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const Job&) { return {}; }
    static holdfast::result<Job> decode(std::string_view) { return Job{}; }
};
