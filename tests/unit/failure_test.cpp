#include <exception>
#include <expected>
#include <stdexcept>
#include <string>
#include <system_error>

#include <holdfast/failure.hpp>

#include "catch.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct plain {
    int value = 7;
};
struct left_base : std::runtime_error {
    using std::runtime_error::runtime_error;
    int left = 1;
};
struct right_base {
    virtual ~right_base() = default;
    int right = 2;
};
struct both : left_base, right_base {
    both() : left_base("both") {}
};
struct root {
    virtual ~root() = default;
    int id = 5;
};
struct via_a : virtual root {
    int a = 1;
};
struct via_b : virtual root {
    int b = 2;
};
struct diamond : via_a, via_b {};
struct twice_a : right_base {};
struct twice_b : right_base {};
struct ambiguous : twice_a, twice_b {};
struct hidden : private std::runtime_error {
    hidden() : std::runtime_error("hidden") {}
};
struct fatal : non_retryable_error {
    fatal() : non_retryable_error("fatal") {}
};

enum class shop_errc { closed = 3 };

template <class E>
std::exception_ptr thrown(E e) {
    try {
        throw e;
    } catch (...) {
        return std::current_exception();
    }
}

} // namespace

template <>
struct std::is_error_code_enum<shop_errc> : std::true_type {};

namespace {
std::error_code make_error_code(shop_errc e) {
    return {static_cast<int>(e), std::generic_category()};
}

// A result type of somebody's own.
struct reply {
    int status = 200;
};
} // namespace

template <>
struct holdfast::returned_failure<reply> {
    static constexpr bool possible = true;
    static bool failed(const reply& r) noexcept { return r.status >= 500; }
    static std::error_code code(const reply& r) noexcept { return {r.status, std::generic_category()}; }
    static std::optional<duration> retry_after(const reply& r) noexcept {
        return r.status == 503 ? std::optional<duration>(9s) : std::nullopt;
    }
};

TEST_CASE("a thrown object is seen as its own type and as each of its bases") {
    const auto e = thrown(both());
    const failure f = failure::thrown(e);
    REQUIRE(f.is_exception());
    REQUIRE(f.as<both>() != nullptr);
    REQUIRE(f.as<left_base>() != nullptr);
    REQUIRE(f.as<std::runtime_error>() != nullptr);
    REQUIRE(f.as<std::exception>() != nullptr);
    CHECK(std::string(f.as<std::exception>()->what()) == "both");
    CHECK(f.as<left_base>()->left == 1);
    CHECK(f.as<std::logic_error>() == nullptr);
    CHECK(f.as<plain>() == nullptr);
}

TEST_CASE("the second base of several is found at its own address") {
    const auto e = thrown(both());
    const failure f = failure::thrown(e);
    REQUIRE(f.as<right_base>() != nullptr);
    CHECK(f.as<right_base>()->right == 2);
    CHECK(f.as<right_base>() == static_cast<const right_base*>(f.as<both>()));
    CHECK(static_cast<const void*>(f.as<right_base>()) != static_cast<const void*>(f.as<both>()));
}

TEST_CASE("a virtual base is found through every path") {
    const auto e = thrown(diamond());
    const failure f = failure::thrown(e);
    REQUIRE(f.as<root>() != nullptr);
    CHECK(f.as<root>()->id == 5);
    REQUIRE(f.as<via_b>() != nullptr);
    CHECK(f.as<via_b>()->b == 2);
    CHECK(f.as<root>() == static_cast<const root*>(f.as<via_a>()));
}

TEST_CASE("a base that is ambiguous or private does not match, as in a catch clause") {
    const auto two = thrown(ambiguous());
    CHECK(failure::thrown(two).as<right_base>() == nullptr);
    CHECK(failure::thrown(two).as<twice_b>() != nullptr);
    const auto secret = thrown(hidden());
    CHECK(failure::thrown(secret).as<std::runtime_error>() == nullptr);
    CHECK(failure::thrown(secret).as<hidden>() != nullptr);
}

TEST_CASE("a base class object does not match a class derived from it") {
    const auto e = thrown(std::runtime_error("x"));
    CHECK(failure::thrown(e).as<left_base>() == nullptr);
}

TEST_CASE("a class without a virtual function is matched too") {
    const auto e = thrown(plain{});
    REQUIRE(failure::thrown(e).as<plain>() != nullptr);
    CHECK(failure::thrown(e).as<plain>()->value == 7);
    CHECK(failure::thrown(e).as<std::exception>() == nullptr);
}

TEST_CASE("what is thrown need not be a class") {
    const auto number = thrown(42);
    const failure f = failure::thrown(number);
    CHECK(f.is_exception());
    CHECK(f.as<std::exception>() == nullptr);
    CHECK_FALSE(f.code());
    CHECK_FALSE(f.is_terminal());
    CHECK(f.message() == "an exception of type int");
    const auto pointer = thrown(static_cast<plain*>(nullptr));
    CHECK(failure::thrown(pointer).as<plain>() == nullptr);
    const auto text = thrown(static_cast<const char*>("text"));
    CHECK(failure::thrown(text).message() == "an exception of type char const*");
}

TEST_CASE("an exception made without a throw is seen like a thrown one") {
    const auto e = std::make_exception_ptr(std::out_of_range("nine"));
    REQUIRE(failure::thrown(e).as<std::logic_error>() != nullptr);
    CHECK(failure::thrown(e).message() == "nine");
}

TEST_CASE("no exception has no type") {
    const std::exception_ptr none;
    CHECK(detail::exception_as<std::exception>(none) == nullptr);
    CHECK(detail::exception_type_name(none) == "none");
    CHECK(detail::exception_message(none).empty());
}

TEST_CASE("a system_error brings its code, a failed brings its code and when to come back") {
    const auto io = thrown(std::system_error(std::make_error_code(std::errc::connection_reset)));
    CHECK(failure::thrown(io).code() == std::errc::connection_reset);
    CHECK_FALSE(failure::thrown(io).retry_after());
    const auto refused = thrown(failed({errc::unavailable, "gone", 3s}));
    CHECK(failure::thrown(refused).code() == make_error_code(errc::unavailable));
    CHECK(failure::thrown(refused).retry_after() == 3s);
    CHECK(failure::thrown(refused).message() == "gone");
}

TEST_CASE("only cancellation and non_retryable_error are terminal") {
    const auto ends = [](const std::exception_ptr& e) { return failure::thrown(e).is_terminal(); };
    CHECK(ends(thrown(operation_cancelled())));
    CHECK(ends(thrown(non_retryable_error("x"))));
    CHECK(ends(thrown(fatal())));
    CHECK_FALSE(ends(thrown(std::runtime_error("x"))));
    CHECK_FALSE(ends(thrown(failed({errc::timed_out, "", {}}))));
    CHECK_FALSE(failure::refused(errc::cancelled).is_terminal());
}

TEST_CASE("an expected that holds an error is a returned failure, with the code that its error type has") {
    const result<int> mine = fail(errc::unavailable, "gone");
    CHECK(failure::returned(mine).is_returned_failure());
    CHECK_FALSE(failure::returned(mine).is_value());
    CHECK(failure::returned(mine).code() == make_error_code(errc::unavailable));

    const result<void> hinted = std::unexpected(error{errc::rate_limited, "slow down", 4s});
    CHECK(failure::returned(hinted).retry_after() == 4s);

    const std::expected<int, std::error_code> code = std::unexpected(std::make_error_code(std::errc::timed_out));
    CHECK(failure::returned(code).code() == std::errc::timed_out);
    const std::expected<int, std::errc> plain_errc = std::unexpected(std::errc::timed_out);
    CHECK(failure::returned(plain_errc).code() == std::errc::timed_out);
    const std::expected<int, errc> own_errc = std::unexpected(errc::timed_out);
    CHECK(failure::returned(own_errc).code() == make_error_code(errc::timed_out));
    const std::expected<int, shop_errc> enumeration = std::unexpected(shop_errc::closed);
    CHECK(failure::returned(enumeration).code().value() == 3);

    const std::expected<int, std::string> text = std::unexpected("no");
    CHECK(failure::returned(text).is_returned_failure());
    CHECK_FALSE(failure::returned(text).code());
}

TEST_CASE("an expected that holds a value is a value, read back by its exact type") {
    const result<int> good = 5;
    const failure f = failure::returned(good);
    CHECK(f.is_value());
    CHECK_FALSE(f.is_returned_failure());
    CHECK_FALSE(f.code());
    REQUIRE(f.value<result<int>>() == &good);
    CHECK(f.value<int>() == nullptr);
    CHECK(f.value<result<long>>() == nullptr);
    CHECK(f.as<std::exception>() == nullptr);
}

TEST_CASE("an error_code is a returned failure when it is set") {
    CHECK(failure::returned(std::error_code()).is_value());
    const auto code = std::make_error_code(std::errc::broken_pipe);
    CHECK(failure::returned(code).is_returned_failure());
    CHECK(failure::returned(code).code() == code);
    CHECK(failure::returned(code).message() == code.message());
}

TEST_CASE("a result type of one's own says what counts as a failure") {
    const reply good{200}, bad{500}, busy{503};
    CHECK(failure::returned(good).is_value());
    CHECK(failure::returned(bad).is_returned_failure());
    CHECK_FALSE(failure::returned(bad).retry_after());
    CHECK(failure::returned(busy).retry_after() == 9s);
    CHECK(failure::returned(busy).code().value() == 503);
    CHECK(failure::returned(bad).value<reply>()->status == 500);
}

TEST_CASE("a plain value is a value") {
    const int seven = 7;
    const failure f = failure::returned(seven);
    CHECK(f.is_value());
    CHECK(*f.value<int>() == 7);
    CHECK(f.message() == "a returned value");
}

TEST_CASE("a refusal by Holdfast has a code and nothing else") {
    const failure f = failure::refused(errc::timed_out);
    CHECK_FALSE(f.is_exception());
    CHECK_FALSE(f.is_value());
    CHECK_FALSE(f.is_returned_failure());
    CHECK(f.code() == make_error_code(errc::timed_out));
    CHECK(f.message() == "timed out");
}

TEST_CASE("codes made by another copy of the category are the same codes") {
    static const error_category elsewhere;
    const std::error_code theirs{static_cast<int>(errc::overloaded), elsewhere};
    CHECK(to_errc(theirs) == errc::overloaded);
    CHECK(category().equivalent(theirs, static_cast<int>(errc::overloaded)));
    CHECK_FALSE(category().equivalent(theirs, static_cast<int>(errc::stopped)));
    CHECK_FALSE(to_errc(std::make_error_code(std::errc::timed_out)).has_value());
}

TEST_CASE("every code has a text of its own") {
    std::string seen;
    for (int code = static_cast<int>(errc::cancelled); code <= static_cast<int>(errc::internal); ++code) {
        const std::string text = category().message(code);
        CHECK(text != "unknown error");
        CHECK(seen.find("|" + text + "|") == std::string::npos);
        seen += "|" + text + "|";
    }
    CHECK(category().message(999) == "unknown error");
}
