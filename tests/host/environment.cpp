#include "catch.hpp"

#include <cstdlib>

#include <holdfast/host.hpp>

#include "environment.hpp"
#include "support.hpp"

using namespace support;
using namespace holdfast;

namespace {

std::optional<std::string> some(const std::string& name) {
    if (name == "USER_NAME") return "desk";
    if (name == "SECRET") return "a$b{c}${d}";
    if (name == "EMPTY") return "";
    return std::nullopt;
}
std::string filled(std::string_view text) {
    return detail::fill_in(text, some).value();
}
std::string refused(std::string_view text) {
    const auto got = detail::fill_in(text, some);
    return got ? "not refused: " + *got : got.error().message;
}

} // namespace

TEST_CASE("values of a configuration take variables of the environment") {
    CHECK(filled("") == "");
    CHECK(filled("plain $ text, $5 and {braces}") == "plain $ text, $5 and {braces}");
    CHECK(filled("postgresql://${USER_NAME}:${SECRET}@db/${USER_NAME}") ==
          "postgresql://desk:a$b{c}${d}@db/desk"); // what comes from there is not read again
    CHECK(filled("${EMPTY}") == "");
    CHECK(filled("${USER_NAME:-nobody}") == "desk");
    CHECK(filled("${EMPTY:-nobody}") == "nobody");
    CHECK(filled("${ABSENT:-a:-b} ${ABSENT:-}!") == "a:-b !");
    CHECK(filled("$${USER_NAME} $$${USER_NAME}") == "${USER_NAME} $${USER_NAME}");
}

TEST_CASE("a variable that is not set, and what is none, are refused with what to do") {
    CHECK(refused("x${ABSENT}") == "the environment variable ABSENT is not set; set it, or write "
                                   "${ABSENT:-otherwise} for a value without it");
    CHECK(refused("${1x}") == "\"${1x}\" names no environment variable; write ${NAME} or ${NAME:-otherwise}, or $${ "
                              "for the characters themselves");
    CHECK(refused("${}").starts_with("\"${}\" names no environment variable"));
    CHECK(refused("a ${USER") == "\"${USER\" has no closing brace");
}

TEST_CASE("a configuration file is filled in from the environment of its process, by line") {
    const auto refusal_of = [](const char* text) { return message_of([&] { host::from_text(text, "desk.toml"); }); };
    ::setenv("HOLDFAST_TEST_LEVEL", "warning", 1);
    ::unsetenv("HOLDFAST_TEST_ABSENT");
    CHECK(refusal_of("[log]\nlevel = '${HOLDFAST_TEST_LEVEL}'\n") == "nothing was thrown");
    CHECK(refusal_of("[plugins]\npath = ['${HOLDFAST_TEST_LEVEL}', '${HOLDFAST_TEST_ABSENT:-x}']\n") ==
          "nothing was thrown");
    CHECK(refusal_of("[store]\nplugin = 'postgres'\nurl = '${HOLDFAST_TEST_ABSENT}'\n") ==
          "desk.toml:3: [store] url: the environment variable HOLDFAST_TEST_ABSENT is not set; set it, or write "
          "${HOLDFAST_TEST_ABSENT:-otherwise} for a value without it");
}
