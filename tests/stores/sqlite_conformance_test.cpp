// The store kit on the plugin file.
#include <string>

#include <holdfast/store_conformance.hpp>

#include "catch.hpp"
#include "stores/kit.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;

namespace {

conformance::summary run_kit(test::sqlite::text_settings with) {
    const harness::temporary_folder folder("hfsqlite");
    asio_runtime on{asio_options{}};
    int number = 0;
    with.emplace_back("file", (folder / "store.db").string());
    const auto open = [&] {
        auto settings = with;
        settings.emplace_back("namespace", "hf_" + std::to_string(number));
        return test::sqlite::open(on, settings);
    };
    const conformance::store_bed bed{
        [&] {
            ++number;
            return open();
        },
        open, &on, [&] { return test::rival_process("sqlite", with, "hf_" + std::to_string(number)); }};
    const conformance::store_options how{.filter = {}, .seed = test::kit_seed()};
    return conformance::run_store_suite(bed, how, [](const conformance::case_result& ended) {
        INFO(ended.title() << ": " << ended.message);
        CHECK((ended.state == conformance::case_result::passed || ended.message == conformance::not_offered));
    });
}

} // namespace

TEST_CASE("sqlite: keeps the contract of stores, safe against power loss") {
    const auto counted = run_kit({});
    CHECK(counted.passed > 180);
}

TEST_CASE("sqlite: keeps the contract of stores without a window for group commits") {
    const auto counted = run_kit({{"synchronous", "normal"}, {"group_commit_window", "0"}});
    CHECK(counted.failed == 0);
}
