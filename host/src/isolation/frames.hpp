// What worker and helper process say to each other: frames of a length, a kind and a body. Pure code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/job_isolation.hpp>
#include <holdfast/logger.hpp>

namespace holdfast::detail {

enum class frame_kind : char {
    ready = 'y',    // helper: started
    failed = 'f',   // helper: could not start, and why
    run = 'r',      // worker: an isolated_job
    stop = 's',     // worker: the token has fired
    progress = 'p', // helper
    log = 'l',      // helper: a level and a message
    ended = 'e',    // helper: an isolated_ending
};

struct frame {
    frame_kind kind;
    std::string body;
};

std::string to_bytes(frame_kind kind, std::string_view body = {});

// Puts frames together from whatever pieces they arrive in.
class frame_buffer {
public:
    void add(std::string_view bytes) { bytes_.append(bytes); }
    std::optional<frame> next();

private:
    std::string bytes_;
    std::size_t read_ = 0;
};

// Bodies. Each decoder gives nothing for what its encoder would not have written.
std::string encode(const isolated_job& job);
std::optional<isolated_job> decode_job(std::string_view body);
std::string encode(const isolated_ending& ended);
std::optional<isolated_ending> decode_ending(std::string_view body);
std::string encode(const job_progress& said);
std::optional<job_progress> decode_progress(std::string_view body);
std::string encode(log_level level, std::string_view message);
std::optional<std::pair<log_level, std::string>> decode_log(std::string_view body);

} // namespace holdfast::detail
