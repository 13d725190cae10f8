#include <string>
#include <string_view>
#include <vector>

#include <holdfast/backoff.hpp>
#include <holdfast/nearest.hpp>

#include "catch.hpp"

using namespace holdfast;

TEST_CASE("the distance of two words counts edits, a swap of neighbours as one") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("file", "file") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("flie", "file") == 1);
    CHECK(edit_distance("fil", "file") == 1);
    CHECK(edit_distance("fiile", "file") == 1);
    CHECK(edit_distance("fale", "file") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("ab", "ba") == 1);
    CHECK(edit_distance("abcd", "badc") == 2);
}

TEST_CASE("the distance is the same in both directions") {
    random_series random(5);
    const auto word = [&] {
        std::string w;
        for (auto n = random.next() % 8; n > 0; --n) w += static_cast<char>('a' + random.next() % 3);
        return w;
    };
    for (int i = 0; i < 2000; ++i) {
        const std::string a = word(), b = word();
        INFO(a << " / " << b);
        REQUIRE(edit_distance(a, b) == edit_distance(b, a));
        REQUIRE((edit_distance(a, b) == 0) == (a == b));
        REQUIRE(edit_distance(a, b) <= std::max(a.size(), b.size()));
    }
}

TEST_CASE("the nearest name is found when it is near enough to be meant") {
    const std::vector<std::string> known{"invoice-email", "webhook", "upload"};
    CHECK(nearest("invoice-mail", known) == "invoice-email");
    CHECK(nearest("webhok", known) == "webhook");
    CHECK(nearest("uplaod", known) == "upload");
    CHECK(nearest("zzzzzzz", known).empty());
    CHECK(nearest("", known).empty());
    CHECK(nearest("x", std::vector<std::string>{}).empty());
}

TEST_CASE("of equally near names the first is taken, of unequally near ones the nearest") {
    CHECK(nearest("cat", std::vector<std::string_view>{"bat", "hat"}) == "bat");
    CHECK(nearest("cat", std::vector<std::string_view>{"bart", "hat"}) == "hat");
}

TEST_CASE("a long word may be further off than a short one") {
    CHECK(nearest("ab", std::vector<std::string_view>{"xyb"}) == "xyb"); // 2 edits
    CHECK(nearest("abc", std::vector<std::string_view>{"xyz"}).empty()); // 3
    CHECK(nearest("consecutive", std::vector<std::string_view>{"consexxxive"}) == "consexxxive");
}

TEST_CASE("a hint is ready to be put at the end of a message, or empty") {
    CHECK(did_you_mean("flie", std::vector<std::string_view>{"file"}) == "; did you mean \"file\"?");
    CHECK(did_you_mean("quite other", std::vector<std::string_view>{"file"}).empty());
}
