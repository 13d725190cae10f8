// A job's record as the scripts keep it: one packed text, the same in C++ as FORM in lua_job_rules.cpp. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/job_store.hpp>

namespace holdfast::redis {

struct record {
    enum flag : unsigned {
        may_restart = 1,
        cancel_requested = 2,
        begun = 4,
        waits_for_parent = 8,
        cancelled_by_parent = 16,
        has_children = 32,
        tells_of_success = 64, // the last attempt; it is not in the history
        has_words = 128,
        has_history = 256,
    };
    int state = 0; // in a request to enqueue: how `due` is meant, as due::kind
    unsigned flags = 0;
    int max_attempts = 0;
    double token = 0;
    double due = 0;
    double keep = -1; // negative: as the store does
    double created = 0;
    double ended = 0;
    double started = 0; // the last attempt
    int attempts = 0;
    int crash_count = 0;
    int max_crashes = 0;
    int generation = 1;
    int priority = 0;
    std::string queue;
    std::string worker;
    std::string unique_key; // with the type and a NUL in front; empty: none
    std::string parent;     // empty: none

    bool has(flag f) const noexcept { return (flags & f) != 0; }
};

std::string pack(const record& r);
// Throws failed(errc::internal) when it is none.
record unpack_record(std::string_view packed);

// A claimed job as the scripts publish it for a watch.
struct parcel {
    std::uint32_t watch = 0;
    std::string id;
    std::string record;
    std::string what;
};
// Throws failed(errc::internal) when it is none.
parcel unpack_parcel(std::string_view packed);

// What a settlement says beyond its kind; empty when that is nothing.
std::string pack_details(const settlement& of);

} // namespace holdfast::redis
