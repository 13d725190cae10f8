#include <array>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <holdfast/json.hpp>

#include "catch.hpp"

using namespace std::chrono_literals;
using namespace holdfast;

namespace json_test {

enum class size { small, large };
BOOST_DESCRIBE_ENUM(size, small, large)
enum class plain : std::uint8_t { one = 1, two = 2 };

struct item {
    std::string name;
    double price = 0;
    friend bool operator==(const item&, const item&) = default;
};
BOOST_DESCRIBE_STRUCT(item, (), (name, price))

struct order {
    bool paid = false;
    int count = 0;
    std::uint64_t total = 0;
    std::int8_t shelf = 0;
    float weight = 0;
    std::string note;
    size bag = size::small;
    plain code = plain::one;
    std::optional<int> discount = 5;
    std::optional<item> gift;
    std::vector<item> items;
    std::vector<bool> flags;
    std::deque<int> waits;
    std::set<std::string> tags;
    std::array<int, 3> box{};
    std::map<std::string, item> by_name;
    std::unordered_map<std::string, std::vector<int>> groups;
    std::chrono::seconds wait{};
    duration exact{};
    store_time placed{};
    std::chrono::sys_days day{};
    identifier id;
    friend bool operator==(const order&, const order&) = default;
};
BOOST_DESCRIBE_STRUCT(order, (),
                      (paid, count, total, shelf, weight, note, bag, code, discount, gift, items, flags, waits, tags,
                       box, by_name, groups, wait, exact, placed, day, id))

struct nothing {
    friend bool operator==(const nothing&, const nothing&) = default;
};
BOOST_DESCRIBE_STRUCT(nothing, (), ())

struct base {
    std::string tenant;
    friend bool operator==(const base&, const base&) = default;
};
BOOST_DESCRIBE_STRUCT(base, (), (tenant))
struct derived : base {
    int number = 0;
    friend bool operator==(const derived&, const derived&) = default;
};
BOOST_DESCRIBE_STRUCT(derived, (base), (number))

class closed {
public:
    closed() = default;
    explicit closed(int n) : secret_(n) {}
    friend bool operator==(const closed&, const closed&) = default;

private:
    int secret_ = 0;
    BOOST_DESCRIBE_CLASS(closed, (), (), (), (secret_))
};

struct tree {
    std::vector<tree> children;
};
BOOST_DESCRIBE_STRUCT(tree, (), (children))

order full() {
    order o;
    o.paid = true;
    o.count = std::numeric_limits<int>::min();
    o.total = std::numeric_limits<std::uint64_t>::max();
    o.shelf = -128;
    o.weight = 0.1F;
    o.note = std::string("tab\t \"quote\" back\\slash\nline \x01 nul:") + '\0' + " grüße 😀";
    o.bag = size::large;
    o.code = plain::two;
    o.discount.reset();
    o.gift = item{"ribbon", 0.1};
    o.items = {{"pen", 1e-300}, {"ink", -12345.678}};
    o.flags = {true, false, true};
    o.waits = {3, 2, 1};
    o.tags = {"a", "b"};
    o.box = {1, 2, 3};
    o.by_name = {{"", {"empty key", 1}}, {"x.y", {"dot", 2}}};
    o.groups = {{"g", {1, 2}}};
    o.wait = -90s;
    o.exact = 1h + 1ns;
    o.placed = store_time{1'763'272'867'123'456us};
    o.day = std::chrono::sys_days{std::chrono::days{20'000}};
    o.id = identifier_source(7).next(std::chrono::system_clock::time_point{1s});
    return o;
}

template <class T>
T round_trip(const T& value) {
    const auto text = codec<T>::encode(value);
    INFO((text ? *text : text.error().message));
    REQUIRE(text);
    auto back = codec<T>::decode(*text);
    INFO((back ? "" : back.error().message));
    REQUIRE(back);
    return *back;
}

} // namespace json_test

using namespace json_test;

static_assert(encodable<order> && encodable<nothing> && encodable<derived>);
static_assert(!encodable<int> && !encodable<std::string>);
static_assert(codec<order>::content_type == "application/json");

TEST_CASE("JSON brings every kind of member back as it was") {
    CHECK(round_trip(full()) == full());
    CHECK(round_trip(order{}) == order{});
    CHECK(round_trip(nothing{}) == nothing{});
    CHECK(round_trip(closed{42}) == closed{42});
}

TEST_CASE("JSON is written the way people would read it") {
    CHECK(*to_json(item{"pen", 1.5}) == R"({"name":"pen","price":1.5})");
    CHECK(*to_json(item{"a\n\"b\"\\", 2}) == R"({"name":"a\n\"b\"\\","price":2})");
    CHECK(*to_json(nothing{}) == "{}");
    derived d;
    d.tenant = "acme";
    d.number = 7;
    CHECK(*to_json(d) == R"({"tenant":"acme","number":7})");
    const auto text = to_json(full());
    REQUIRE(text);
    for (const char* part : {R"("bag":"large")", R"("code":2)", R"("discount":null)", R"("wait":"-1m30s")",
                             R"("exact":"1h1ns")", R"("placed":"2025-11-16T06:01:07.123456Z")",
                             R"("day":"2024-10-04T00:00:00Z")", R"(nul:\u0000)", R"("shelf":-128)"})
        CHECK_THAT(*text, Catch::Matchers::ContainsSubstring(part));
}

TEST_CASE("members of a described base count") {
    derived d;
    d.tenant = "acme";
    d.number = 7;
    CHECK(round_trip(d) == d);
}

TEST_CASE("what JSON cannot hold is refused when it is written, with its place") {
    const auto why = [](const order& o) {
        const auto text = to_json(o);
        REQUIRE_FALSE(text);
        CHECK(text.error().code == errc::invalid_argument);
        return text.error().message;
    };
    order o;
    o.items = {{"good", 1}, {"bad \xff", 1}};
    CHECK(why(o) == "items[1].name: expected UTF-8 text, found bytes that are not");
    o = {};
    o.gift = item{"x", std::numeric_limits<double>::infinity()};
    CHECK(why(o) == "gift.price: JSON has no form for a number that is not finite");
    o = {};
    o.bag = static_cast<size>(9);
    CHECK(why(o) == "bag: no enumerator has the value 9");
    o = {};
    o.by_name["\xc3\x28"] = {};
    CHECK(why(o) == "by_name: expected UTF-8 keys, found bytes that are not");
    o = {};
    o.wait = std::chrono::seconds::max();
    CHECK(why(o) == "wait: the duration is longer than 292 years");
    o = {};
    o.day = std::chrono::sys_days{std::chrono::days{10'000'000}};
    CHECK(why(o) == "day: a time must be in the years 0 to 9999");
}

TEST_CASE("what is nested too deeply is refused by the writer as by the reader") {
    tree root;
    for (int i = 0; i < 31; ++i) {
        tree above;
        above.children.push_back(std::move(root));
        root = std::move(above);
    }
    const auto just = to_json(root);
    REQUIRE(just);
    CHECK(from_json<tree>(*just));
    tree above;
    above.children.push_back(std::move(root));
    const auto too_deep = to_json(above);
    REQUIRE_FALSE(too_deep);
    CHECK_THAT(too_deep.error().message, Catch::Matchers::ContainsSubstring("nested deeper than 64 levels"));
}
