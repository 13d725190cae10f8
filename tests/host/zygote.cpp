// The process that forks helpers, and what it hands over.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include <poll.h>
#include <sys/resource.h>

#include "catch.hpp"
#include "isolation/zygote.hpp"

using namespace holdfast;

namespace {

// So many more files can be opened, as long as it lives.
class few_files {
public:
    explicit few_files(int more) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const detail::file_handle next(::dup(0));
        const rlimit few{static_cast<rlim_t>(next.get() + more), before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    ~few_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    few_files(const few_files&) = delete;
    few_files& operator=(const few_files&) = delete;

private:
    rlimit before_{};
};

detail::zygote::message next_from(detail::zygote& zygote) {
    pollfd ready{zygote.file(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 10'000) == 1);
    return zygote.receive();
}

auto open_files() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

} // namespace

TEST_CASE("a helper whose files do not all fit into the worker is refused, and no other file is closed for it") {
    if (detail::count_threads() != 1) SKIP("there is more than one thread");
    const int fitting = GENERATE(0, 1);
    const auto zygote = detail::zygote::fork([](detail::helper_side) { return 0; });
    REQUIRE(zygote->ask_for_helper(false));
    const auto before = open_files();
    {
        const few_files few(fitting);
        const auto heard = next_from(*zygote);
        REQUIRE(heard.started);
        CHECK(heard.started->id == -1);
        CHECK(heard.started->problem == EMFILE);
        CHECK_FALSE(heard.started->socket);
        CHECK_FALSE(heard.started->crash_report);
    }
    CHECK(open_files() == before);
    REQUIRE(zygote->ask_for_helper(false)); // when there is room again
    for (;;) {
        const auto heard = next_from(*zygote);
        REQUIRE_FALSE(heard.dead);
        if (!heard.started) continue; // the end of the other
        CHECK(heard.started->id > 0);
        CHECK(heard.started->socket);
        CHECK(heard.started->crash_report);
        break;
    }
}
