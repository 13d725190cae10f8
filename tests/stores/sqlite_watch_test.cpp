// Hints about what is written to the file from outside the store.
#include <atomic>
#include <thread>

#include "catch.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// A hint comes after those there were.
bool more_than(int before, const std::atomic<int>& count) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (count <= before && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
    return count > before;
}

} // namespace

TEST_CASE("sqlite: a job in the application's own transaction makes a hint when that is committed") {
    test::sqlite::desk d;
    std::atomic<int> count = 0;
    const auto watch = d.jobs().watch({"default"}, [&] { ++count; });
    REQUIRE(watch != nullptr);
    for (int i = 0; i < 3; ++i) {
        const test::sqlite::raw_file application(d.file());
        application.run("BEGIN IMMEDIATE");
        {
            const auto unit = d.await(d.kept->join(native_transaction::of(application.handle())));
            d.await(d.jobs().enqueue({d.job()}, unit.get()));
        }
        const int before = count;
        application.run("COMMIT");
        CHECK(more_than(before, count));
        CHECK(d.claim(10).size() == 1);
    }
}
