#include <string>
#include <vector>

#include <holdfast/settings.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

settings sample() {
    settings s("[store]");
    s.set("file", "desk.db", "desk.toml:7");
    s.set("threads", "4", "desk.toml:8");
    s.set("wait", "1m30s", "desk.toml:9");
    s.set("sync", "true", "desk.toml:10");
    s.set("hosts", settings::value{{"a", "b"}, "desk.toml:11", true});
    return s;
}

template <class Getter>
std::string refusal_of(settings& s, Getter getter) {
    try {
        getter(s);
    } catch (const failed& e) {
        CHECK(e.code() == errc::configuration);
        CHECK(s.refusal().has_value());
        CHECK(s.refusal()->message == e.what());
        return e.what();
    }
    return "nothing was thrown";
}

} // namespace

TEST_CASE("settings give what was written, in the form asked for") {
    settings s = sample();
    CHECK(s.text("file", "other") == "desk.db");
    CHECK(s.required_text("file") == "desk.db");
    CHECK(s.integer("threads", 1, 1, 8) == 4);
    CHECK(s.time("wait", 1s) == 90s);
    CHECK(s.flag("sync", false));
    CHECK(s.list("hosts") == std::vector<std::string>{"a", "b"});
    CHECK(s.list("file") == std::vector<std::string>{"desk.db"});
    CHECK_FALSE(s.refusal());
}

TEST_CASE("what was not written takes the value that the plugin gives") {
    settings s("[store]");
    CHECK(s.text("file", "other") == "other");
    CHECK(s.integer("threads", 3, 1, 8) == 3);
    CHECK(s.integer("threads", -1, 1, 8) == -1); // the plugin's own default is not checked
    CHECK(s.time("wait", 2s) == 2s);
    CHECK(s.flag("sync", true));
    CHECK_FALSE(s.flag("sync", false));
    CHECK(s.list("hosts").empty());
    CHECK_FALSE(s.has("file"));
}

TEST_CASE("a required key that is missing is named") {
    settings s = sample();
    CHECK(refusal_of(s, [](settings& x) { x.required_text("user"); }) == "[store] needs the key \"user\"");
}

TEST_CASE("a value of the wrong form is refused with place, key, expectation and finding") {
    settings s = sample();
    s.set("bad", "12x", "desk.toml:3");
    CHECK(refusal_of(s, [](settings& x) { x.integer("bad", 1, 1, 8); }) ==
          "desk.toml:3: [store] bad: expected a whole number from 1 to 8, found \"12x\"");
    CHECK(refusal_of(s, [](settings& x) { x.time("bad", 1s); }) ==
          "desk.toml:3: [store] bad: expected a duration such as \"250ms\", \"10s\", \"5m\", \"6h\", \"1d\", found "
          "\"12x\"");
    CHECK(refusal_of(s, [](settings& x) { x.flag("bad", true); }) ==
          "desk.toml:3: [store] bad: expected true or false, found \"12x\"");
    CHECK(refusal_of(s, [](settings& x) { x.text("hosts", ""); }) ==
          "desk.toml:11: [store] hosts: expected one value, found a list");
}

TEST_CASE("a number is held to its limits, both of which are allowed") {
    settings s("[x]");
    const auto read = [&](std::string text) {
        s.set("n", std::move(text));
        return refusal_of(s, [](settings& x) { x.integer("n", 0, -2, 8); });
    };
    CHECK(read("8") == "nothing was thrown");
    CHECK(read("-2") == "nothing was thrown");
    for (const char* text : {"9", "-3", "", " 1", "1 ", "+1", "0x1", "1.0", "99999999999999999999"})
        CHECK(read(text) == "[x] n: expected a whole number from -2 to 8, found \"" + std::string(text) + "\"");
}

TEST_CASE("a key that nobody asks for is refused with the nearest one that somebody did") {
    settings s("[store]");
    s.set("flie", "desk.db", "desk.toml:7");
    s.text("file", "");
    s.integer("threads", 1, 1, 8);
    const auto unknown = s.first_unknown();
    REQUIRE(unknown);
    CHECK(unknown->code == errc::configuration);
    CHECK(unknown->message == "desk.toml:7: [store] has no key \"flie\"; did you mean \"file\"?");
}

TEST_CASE("a key that was only looked for counts as asked for") {
    settings s = sample();
    CHECK(s.first_unknown().has_value());
    for (const char* key : {"file", "threads", "wait", "sync", "hosts"}) CHECK(s.has(key));
    CHECK_FALSE(s.first_unknown());
}

TEST_CASE("a key set again keeps the last value") {
    settings s("[x]");
    s.set("file", "a");
    s.set("file", "b");
    CHECK(s.required_text("file") == "b");
}

TEST_CASE("a relative path starts at the configuration's folder") {
    settings s("[store]", "desk.toml:3", "/etc/desk");
    s.set("file", "desk.db");
    s.set("other", "/var/desk.db");
    CHECK(s.required_path("file") == "/etc/desk/desk.db");
    CHECK(s.required_path("other") == "/var/desk.db");
    settings without("[store]");
    without.set("file", "desk.db");
    CHECK(without.required_path("file") == "desk.db");
}

TEST_CASE("a required key that is missing is told of by the section's place, or by the key that was meant for it") {
    settings s("[store]", "desk.toml:3");
    s.set("namespace", "desk", "desk.toml:4");
    CHECK(refusal_of(s, [](settings& from) { from.required_text("file"); }) ==
          "desk.toml:3: [store] needs the key \"file\"");
    s.set("flie", "desk.db", "desk.toml:5");
    CHECK(refusal_of(s, [](settings& from) { from.required_text("file"); }) ==
          "desk.toml:5: [store] has no key \"flie\"; did you mean \"file\"?");
}
