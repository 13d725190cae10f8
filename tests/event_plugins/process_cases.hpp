// Cases with processes of their own.
#pragma once

#include <fstream>
#include <map>
#include <set>

#include "catch.hpp"
#include "event_plugins/support.hpp"
#include "harness/child_process.hpp"
#include "harness/temporary_folder.hpp"

namespace holdfast::test {

inline std::vector<std::string> lines_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
}

template <class Condition>
bool wait_for(Condition condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds{10});
    return condition();
}

inline harness::child_process start(const event_desk& d, const std::string& verb, const std::filesystem::path& file) {
    harness::command what{{HOLDFAST_EVENT_PROGRAM, verb, d.plugin, file.string()}};
    for (const auto& [key, value] : d.with) what.arguments.push_back(key + "=" + value);
    return harness::child_process(what);
}

// A process that is killed with messages in its hands loses its leases, and nothing else.
inline void check_killed_holder(event_desk& d) {
    const harness::temporary_folder folder("hfevents");
    d.subscribe();
    for (const char* body : {"1", "2", "3"}) d.add(body, "k");
    auto holder = start(d, "hold", folder / "held");
    REQUIRE(wait_for([&] { return lines_of(folder / "held").size() == 3; }));
    CHECK(d.receive().empty());
    holder.signal(SIGKILL);
    const auto got = d.receive_soon();
    CHECK(bodies(got) == std::vector<std::string>{"1", "2", "3"});
    for (const delivery& each : got) CHECK(each.crashes == 1);
}

// Two processes share what there is, one is killed again and again: everything arrives, in order per key but for what
// comes twice.
inline void check_two_pumps(event_desk& d, int messages) {
    const harness::temporary_folder folder("hfevents");
    d.subscribe();
    auto steady = start(d, "pump", folder / "got");
    for (int i = 0; i < messages; i += 10) {
        std::vector<envelope> batch;
        for (int k = i; k < i + 10; ++k) batch.push_back(d.message(std::to_string(k), "k" + std::to_string(k % 3)));
        d.await(d.kept->publish(std::move(batch)));
        if (i % (messages / 4) != 0) continue;
        auto victim = start(d, "pump", folder / "got");
        std::this_thread::sleep_for(std::chrono::milliseconds{150});
        victim.signal(SIGKILL);
    }
    REQUIRE(wait_for([&] {
        const auto view = d.view();
        return view.waiting + view.leased == 0;
    }));
    std::map<std::string, int> last;
    std::set<int> seen;
    for (const std::string& line : lines_of(folder / "got")) {
        const auto blank = line.find(' ');
        const int number = std::stoi(line.substr(blank + 1));
        if (!seen.insert(number).second) continue;
        auto [before, first] = last.try_emplace(line.substr(0, blank), -1);
        CHECK(before->second < number);
        before->second = number;
    }
    CHECK(seen.size() == static_cast<std::size_t>(messages));
    CHECK(d.view().acknowledged == static_cast<std::uint64_t>(messages));
}

} // namespace holdfast::test
