// The kit for transports of events, on a plugin file.
#pragma once

#include <holdfast/event_conformance.hpp>

#include "catch.hpp"
#include "event_plugins/support.hpp"

namespace holdfast::test {

// Runs all cases; none may fail, or be skipped. How many.
inline int passed_cases(const std::string& plugin, const text_settings& settings, int rounds = 20) {
    asio_runtime on{asio_options{}};
    text_settings latest;
    const auto open = [&] { return open_transport(plugin, on, latest); };
    const auto fresh = [&](const conformance::transport_settings& more) {
        latest = settings;
        latest.insert(latest.end(), more.begin(), more.end());
        latest.emplace_back("namespace", fresh_namespace());
        return open();
    };
    const conformance::transport_bed bed{fresh, open, &on};
    const auto counted = conformance::run_transport_suite(bed, {.filter = {}, .rounds = rounds},
                                                          [](const conformance::case_result& ended) {
                                                              INFO(ended.title() << ": " << ended.message);
                                                              CHECK(ended.state != conformance::case_result::failed);
                                                              CHECK(ended.state != conformance::case_result::skipped);
                                                          });
    return counted.passed;
}

} // namespace holdfast::test
