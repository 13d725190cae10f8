// What worker and helper processes say to each other.
#include "catch.hpp"
#include "isolation/crash_report.hpp"
#include "isolation/frames.hpp"

using namespace holdfast;
using namespace std::chrono_literals;
using detail::encode;
using detail::frame_kind;

TEST_CASE("an isolated job and its end arrive as they were sent") {
    isolated_job job{.what = {"t", 3, "text/plain", std::string("a\0b", 3)},
                     .id = identifier_source(1).next(),
                     .token = 77,
                     .queue = "mail",
                     .attempt = 4,
                     .max_attempts = 9,
                     .crash_count = 1,
                     .generation = 5,
                     .extra = {{"a", "1"}, {"b", ""}},
                     .so_far = {.redeliveries = 3, .calls = 9, .retries = {0, 2}}};
    const auto there = detail::decode_job(encode(job));
    REQUIRE(there);
    CHECK(there->what == job.what);
    CHECK(there->id == job.id);
    CHECK(there->token == 77);
    CHECK(there->queue == "mail");
    CHECK(there->attempt == 4);
    CHECK(there->max_attempts == 9);
    CHECK(there->so_far.redeliveries == 3);
    CHECK(there->so_far.calls == 9);
    CHECK(there->so_far.retries == std::vector{0, 2});
    CHECK(there->crash_count == 1);
    CHECK(there->generation == 5);
    CHECK(there->extra == job.extra);

    isolated_ending ended{.how = isolated_ending::kind::threw,
                          .failure = {errc::not_found, "no", 3s},
                          .output = "out",
                          .snooze = 1s,
                          .retry_after = std::nullopt};
    ended.verdict.ending.how = settlement::kind::retry;
    ended.verdict.ending.when = due::after(5s);
    ended.verdict.ending.error = {"type", "message"};
    ended.verdict.again = exception_decision{.what = exception_decision::action::retry, .after = 7s, .rule = 1};
    ended.verdict.discarded = true;
    const auto back = detail::decode_ending(encode(ended));
    REQUIRE(back);
    CHECK(back->how == ended.how);
    CHECK(back->failure.code == errc::not_found);
    CHECK(back->failure.retry_after == 3s);
    CHECK(back->verdict.ending.how == settlement::kind::retry);
    CHECK(back->verdict.ending.when.delay == 5s);
    CHECK(back->verdict.ending.error.message == "message");
    REQUIRE(back->verdict.again);
    CHECK(back->verdict.again->what == exception_decision::action::retry);
    CHECK(back->verdict.again->after == 7s);
    CHECK(back->verdict.again->rule == 1);
    CHECK(back->verdict.discarded);
    CHECK(back->output == "out");
    CHECK(back->snooze == 1s);
    CHECK(!back->retry_after);
}

TEST_CASE("what was cut short does not decode, wherever it was cut") {
    const std::string whole =
        encode(isolated_job{.what = {"t", 1, "x", "body"}, .id = {}, .queue = "q", .extra = {{"k", "v"}}});
    REQUIRE(detail::decode_job(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) REQUIRE(!detail::decode_job(whole.substr(0, size)));
    CHECK(!detail::decode_job(whole + "x"));
    CHECK(!detail::decode_ending("short"));
    CHECK(!detail::decode_progress(""));
    CHECK(!detail::decode_log("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"));
}

TEST_CASE("frames are put together from pieces of any size") {
    const std::string bytes = detail::to_bytes(frame_kind::ready) + detail::to_bytes(frame_kind::log, "one") +
                              detail::to_bytes(frame_kind::ended, std::string(1000, 'x'));
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
        detail::frame_buffer received;
        std::vector<detail::frame> frames;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            received.add(std::string_view(bytes).substr(at, piece));
            while (auto whole = received.next()) frames.push_back(std::move(*whole));
        }
        REQUIRE(frames.size() == 3);
        CHECK(frames[0].kind == frame_kind::ready);
        CHECK(frames[0].body.empty());
        CHECK(frames[1].body == "one");
        CHECK(frames[2].body.size() == 1000);
    }
}

TEST_CASE("the end of a process and its stack are told as people write them") {
    CHECK(detail::ending_in_words(3 << 8) == "exit code 3");
    CHECK(detail::ending_in_words(11) == "SIGSEGV");
    CHECK(
        detail::readable_stack("SIGSEGV at address 0x0\n./desk(_ZN4desk4sendEi+0x1a) [0x55]\n./desk(+0x12) [0x56]\n") ==
        "SIGSEGV at address 0x0\ndesk::send(int)+0x1a in desk\n./desk(+0x12) [0x56]");
}
