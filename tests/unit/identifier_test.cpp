#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <holdfast/identifier.hpp>

#include "catch.hpp"

using holdfast::identifier;
using holdfast::identifier_source;
using holdfast::parse_identifier;
using holdfast::to_text;

namespace {

std::chrono::system_clock::time_point at_ms(std::int64_t ms) {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds{ms});
}

} // namespace

TEST_CASE("an identifier is read back from its text, in either case") {
    identifier_source ids(1);
    for (int i = 0; i < 1000; ++i) {
        const identifier id = ids.next(at_ms(i * 1'000'003LL));
        std::string text = to_text(id);
        CHECK(text.size() == 26);
        CHECK(parse_identifier(text) == id);
        std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        CHECK(parse_identifier(text) == id);
    }
}

TEST_CASE("the smallest and the largest identifier have the texts they should") {
    identifier largest;
    largest.bytes.fill(0xFF);
    CHECK(to_text(identifier{}) == "00000000000000000000000000");
    CHECK(to_text(largest) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    CHECK(parse_identifier("7ZZZZZZZZZZZZZZZZZZZZZZZZZ") == largest);
    CHECK_FALSE(static_cast<bool>(identifier{}));
    CHECK(static_cast<bool>(largest));
}

TEST_CASE("what is no identifier is not read") {
    const auto bad = GENERATE(as<std::string>{}, "", "0", "0000000000000000000000000", "000000000000000000000000000",
                              "80000000000000000000000000", "0000000000000000000000000I", "0000000000000000000000000L",
                              "0000000000000000000000000O", "0000000000000000000000000U", "0000000000000000000000000-",
                              " 0000000000000000000000000");
    CHECK_FALSE(parse_identifier(bad));
}

TEST_CASE("identifiers and their texts sort by the time they were made") {
    identifier_source ids(7);
    identifier before = ids.next(at_ms(0));
    for (int i = 1; i < 500; ++i) {
        const identifier next = ids.next(at_ms(i * 977LL));
        CHECK(before < next);
        CHECK(to_text(before) < to_text(next));
        before = next;
    }
}

TEST_CASE("a seed gives the same identifiers again, and the system's randomness others") {
    identifier_source a(5), b(5), c(6);
    std::set<identifier> seen;
    for (int i = 0; i < 1000; ++i) {
        const identifier id = a.next(at_ms(1));
        CHECK(id == b.next(at_ms(1)));
        CHECK(id != c.next(at_ms(1)));
        CHECK(seen.insert(id).second);
    }
    identifier_source x, y;
    CHECK(x.next(at_ms(1)) != y.next(at_ms(1)));
}
