#include <string>

#include <holdfast/asio_runtime.hpp>
#include <holdfast/event_conformance.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "catch.hpp"
#include "memory_transport.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

events_memory::options options_from(const conformance::transport_settings& with) {
    events_memory::options made;
    for (const auto& [key, value] : with) {
        if (key == "keep") made.keep = parse_duration(value).value();
        if (key == "max_backlog") made.max_backlog = std::stoul(value);
        if (key == "max_payload") made.max_payload = std::stoul(value);
    }
    return made;
}

constexpr int needs_a_second_instance = 8;

void passes(runtime& on) {
    const conformance::transport_bed bed{
        [&](const auto& with) { return events_memory::make_transport(options_from(with), &on); }, {}, &on};
    std::string wrong;
    int skipped = 0;
    const auto total = conformance::run_transport_suite(bed, {}, [&](const conformance::case_result& r) {
        if (r.state == conformance::case_result::failed) wrong += r.title() + ": " + r.message + "\n";
        if (r.state == conformance::case_result::skipped) ++skipped;
    });
    INFO(wrong);
    CHECK(total.failed == 0);
    CHECK(total.passed > 60);
    CHECK(skipped == needs_a_second_instance);
}

} // namespace

TEST_CASE("the memory transport keeps its contract on virtual time") {
    simulated_runtime on(3);
    passes(on);
}

TEST_CASE("the memory transport keeps its contract on threads") {
    asio_runtime on{asio_options{}};
    passes(on);
}
