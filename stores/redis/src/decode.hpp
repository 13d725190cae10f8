// Replies of the scripts as the types of the interfaces. Pure. A reply of another shape than expected throws
// failed(errc::internal).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <holdfast/job_store.hpp>
#include <holdfast/outbox_store.hpp>

#include "client.hpp"

namespace holdfast::redis {

// Takes the elements of a list one after the other.
class reader {
public:
    explicit reader(reply& list);
    bool more() const noexcept { return at_ < list_.items.size(); }
    reply& next();
    std::string text() { return std::move(next().text); }
    // Of an integer, or of digits.
    std::int64_t number();
    std::uint64_t token() { return static_cast<std::uint64_t>(number()); }
    int integer() { return static_cast<int>(number()); }
    bool flag() { return number() != 0; }
    identifier id();
    payload what();

private:
    reply& list_;
    std::size_t at_ = 0;
};

claimed_job decode_claimed(reader& from);
// As `show` in lua_job_reading.cpp gives it. The attempt that its record tells of, if there is one, is the history.
job_view decode_job(reader& from);
attempt_entry decode_attempt(reply& from);
std::vector<write_answer> decode_answers(reply& from);
std::pair<message_view, std::uint64_t> decode_message(reply& from); // and the token

} // namespace holdfast::redis
