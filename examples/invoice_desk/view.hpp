// The live view: one line that is written over in a terminal, a line a second elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/job_store.hpp>

struct desk_numbers {
    std::uint64_t total = 0;
    std::uint64_t waiting = 0; // pending or scheduled
    std::uint64_t running = 0;
    std::uint64_t retrying = 0;
    std::uint64_t sent = 0;
    std::uint64_t dead = 0;
    std::uint64_t other = 0;     // failed, cancelled, indeterminate: there should be none
    std::map<int, int> attempts; // how many mails have had how many

    std::uint64_t ended() const { return sent + dead + other; }
};

desk_numbers add_up(const std::vector<holdfast::job_count>& counts);

class live_view {
public:
    live_view();
    // Whether it is time for another look, or there will be none.
    bool is_due(const desk_numbers& now) const;
    void show(const desk_numbers& now);
    // A sentence of its own, above the line.
    void say(std::string_view sentence);
    void end();
    double seconds() const;

private:
    std::string line(const desk_numbers& now);

    const bool terminal_;
    const std::chrono::steady_clock::time_point began_;
    std::chrono::steady_clock::time_point last_;
    std::uint64_t ended_before_ = 0;
    double rate_ = 0;
    bool open_ = false;
};
