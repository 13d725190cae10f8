#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/json.hpp>

#include "catch.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace json_reading_test {

enum class level { low, high };
BOOST_DESCRIBE_ENUM(level, low, high)

struct line {
    std::string name = "unnamed";
    double price = 9.5;
};
BOOST_DESCRIBE_STRUCT(line, (), (name, price))

struct bill {
    std::string to = "nobody";
    int copies = 1;
    std::uint8_t pages = 1;
    std::uint64_t number = 0;
    float scale = 1;
    bool urgent = true;
    level at = level::low;
    std::optional<std::string> note = "as usual";
    std::vector<line> items = {{"first", 1}};
    std::map<std::string, line> more;
    std::array<int, 2> pair{};
    std::chrono::minutes wait = 5min;
    store_time when{};
    identifier id;
};
BOOST_DESCRIBE_STRUCT(bill, (), (to, copies, pages, number, scale, urgent, at, note, items, more, pair, wait, when, id))

bill read(std::string_view text) {
    auto decoded = codec<bill>::decode(text);
    INFO((decoded ? "" : decoded.error().message));
    REQUIRE(decoded);
    return *decoded;
}
std::string refusal(std::string_view text) {
    const auto decoded = codec<bill>::decode(text);
    INFO(text);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == errc::invalid_argument);
    return decoded.error().message;
}

} // namespace json_reading_test

using namespace json_reading_test;

TEST_CASE("members that the text lacks keep the value that the struct gives them") {
    const bill b = read(R"({"to":"a@example.org"})");
    CHECK(b.to == "a@example.org");
    CHECK(b.copies == 1);
    CHECK(b.urgent);
    CHECK(b.note == "as usual");
    REQUIRE(b.items.size() == 1);
    CHECK(b.items[0].name == "first");
    CHECK(b.wait == 5min);
    CHECK(read("{}").to == "nobody");
    CHECK(read(R"({"items":[{"price":2}]})").items.at(0).name == "unnamed");
}

TEST_CASE("members that the struct no longer has are skipped, whatever they hold") {
    const bill b = read(R"({"was":{"deep":[1,{"x":null}]},"copies":3,"":0,"items":[{"name":"n","colour":"red"}]})");
    CHECK(b.copies == 3);
    REQUIRE(b.items.size() == 1);
    CHECK(b.items[0].name == "n");
}

TEST_CASE("null empties an optional, and is refused elsewhere") {
    CHECK_FALSE(read(R"({"note":null})").note);
    CHECK(refusal(R"({"to":null})") == "to: expected a string, found null");
}

TEST_CASE("a value of the wrong kind is refused, and the message says where") {
    CHECK(refusal("[]") == "expected an object, found an array");
    CHECK(refusal(R"({"items":[{},{},{},{"price":"12"}]})") == "items[3].price: expected a number, found a string");
    CHECK(refusal(R"({"more":{"k":{"name":7}}})") == "more.k.name: expected a string, found a number");
    CHECK(refusal(R"({"items":{}})") == "items: expected an array, found an object");
    CHECK(refusal(R"({"more":[]})") == "more: expected an object, found an array");
    CHECK(refusal(R"({"urgent":1})") == "urgent: expected true or false, found a number");
    CHECK(refusal(R"({"copies":true})") == "copies: expected a whole number, found true");
    CHECK(refusal(R"({"pair":[1]})") == "pair: expected 2 elements, found 1");
    CHECK(refusal(R"({"pair":[1,"x"]})") == "pair[1]: expected a whole number, found a string");
    CHECK(refusal(R"({"at":"medium"})") == R"(at: expected one of low, high, found "medium")");
    CHECK(refusal(R"({"at":0})") == "at: expected a string, found a number");
    CHECK(refusal(R"({"wait":"soon"})") == R"(wait: expected a duration such as "1h30m", found "soon")");
    CHECK(refusal(R"({"wait":"90s"})") == R"(wait: expected a whole multiple of 1m, found "90s")");
    CHECK(refusal(R"({"when":"2026-02-30T00:00:00Z"})") ==
          R"(when: expected a time such as "2026-11-16T06:01:07Z", found "2026-02-30T00:00:00Z")");
    CHECK(refusal(R"({"id":"no"})") == R"(id: expected an identifier of 26 characters, found "no")");
}

TEST_CASE("numbers that do not fit their member are refused") {
    CHECK(refusal(R"({"pages":256})") == "pages: expected a whole number from 0 to 255, found 256");
    CHECK(refusal(R"({"pages":-1})") == "pages: expected a whole number from 0 to 255, found -1");
    CHECK_THAT(refusal(R"({"copies":1.5})"),
               Catch::Matchers::ContainsSubstring("copies: expected a whole number from -2147483648 to 2147483647"));
    CHECK_THAT(refusal(R"({"number":18446744073709551616})"),
               Catch::Matchers::ContainsSubstring("number: expected a whole number from 0"));
    CHECK_THAT(refusal(R"({"scale":1e39})"), Catch::Matchers::ContainsSubstring("scale: expected a number that fits"));
    CHECK_THAT(refusal(R"({"items":[{"price":1e99999}]})"),
               Catch::Matchers::ContainsSubstring("items[0].price: expected a number that fits"));
    CHECK(read(R"({"number":18446744073709551615,"copies":3.0})").number == 18446744073709551615ULL);
    CHECK(read(R"({"items":[{"price":7}]})").items.at(0).price == 7);
}

TEST_CASE("what is not JSON is refused with the place where it stops being so") {
    CHECK(refusal("") == "expected JSON, found nothing");
    CHECK(refusal(R"({"to":"a)") == "not JSON near byte 8 of 8: incomplete JSON");
    CHECK_THAT(refusal(R"({"to" "a"})"), Catch::Matchers::ContainsSubstring("not JSON near byte 6 of 10"));
    CHECK_THAT(refusal("{} {}"), Catch::Matchers::ContainsSubstring("extra data"));
    CHECK_THAT(refusal(std::string_view("{}\0", 3)), Catch::Matchers::ContainsSubstring("not JSON near byte 2"));
    CHECK_THAT(refusal(std::string_view("{\"to\":\"a\0b\"}", 12)), Catch::Matchers::ContainsSubstring("not JSON near"));
    CHECK_THAT(refusal("{\"to\":\"\xff\"}"), Catch::Matchers::ContainsSubstring("not JSON near"));
    CHECK_THAT(refusal("{\"to\":\"\xed\xa0\x80\"}"), Catch::Matchers::ContainsSubstring("not JSON near"));
    CHECK_THAT(refusal("nan"), Catch::Matchers::ContainsSubstring("not JSON near"));
}

TEST_CASE("text that is nested without end is refused, not followed") {
    const std::string arrays = R"({"was":)" + std::string(1'000'000, '[');
    CHECK_THAT(refusal(arrays), Catch::Matchers::ContainsSubstring("too deep"));
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += R"({"x":)";
    CHECK_THAT(refusal(objects), Catch::Matchers::ContainsSubstring("too deep"));
}

TEST_CASE("every prefix of a good text is refused, and none of them crashes") {
    const std::string text = R"({"to":"grüße 😀 \u00e9","copies":12,"items":[{"name":"n","price":1.5e3}],"note":null})";
    for (std::size_t n = 0; n < text.size(); ++n) CHECK_FALSE(codec<bill>::decode(text.substr(0, n)));
    CHECK(read(text).to == "grüße 😀 é");
}

TEST_CASE("the last of two members with one name counts") {
    CHECK(read(R"({"copies":1,"copies":2})").copies == 2);
}
