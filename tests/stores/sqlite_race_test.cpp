#include "stores/race.hpp"
#include "stores/sqlite_support.hpp"

using namespace holdfast;

TEST_CASE("sqlite: of completion and recovery exactly one counts, whichever comes first") {
    test::sqlite::desk d({{"synchronous", "normal"}});
    const auto other = test::sqlite::open(d.on, d.with);
    d.await(other->prepare());
    test::race_completion_against_recovery(d, *other, 100'000);
}
