// stubborn_program <configuration> blocking|coroutine
//
// A worker process with handlers that never end: one of that kind, and one beside it that does.
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include <holdfast/codec.hpp>
#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

using namespace std::chrono_literals;
using namespace holdfast;

namespace {

struct endless {
    static constexpr job_options options{.name = "endless"};
};
struct quick {
    static constexpr job_options options{.name = "quick"};
};

void hang(job_context& c) {
    std::puts("it hangs"); // buffered, for this is no terminal
    c.log().info("the endless one runs");
    for (;;) std::this_thread::sleep_for(1h);
}

task<void> hang_a_runtime_thread(endless, job_context& c) {
    hang(c);
    co_return;
}

} // namespace

template <class Job>
    requires std::same_as<Job, endless> || std::same_as<Job, quick>
struct holdfast::codec<Job> {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const Job&) { return {}; }
    static result<Job> decode(std::string_view) { return Job{}; }
};

int main(int count, char** arguments) {
    if (count != 3) return 2;
    auto host = holdfast::host::from_file(arguments[1]);
    host.add<quick>([](quick, job_context& c) { c.log().info("the quick one ran"); });
    if (arguments[2] == std::string_view("coroutine")) host.add<endless>(&hang_a_runtime_thread);
    else host.add<endless>([](endless, job_context& c) { hang(c); });
    host.start();
    for (int i = 0; i < 2; ++i)
        if (!sync_wait(host.runtime(), host.jobs().enqueue(quick{}))) return 3;
    if (!sync_wait(host.runtime(), host.jobs().enqueue(endless{}, {.after = 100ms}))) return 3;
    return host.run();
}
