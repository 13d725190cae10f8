// Replies of the scripts as the types of the interfaces. Pure. A reply of another shape than expected throws
// failed(errc::internal).
#pragma once

#include <utility>

#include <holdfast/job_store.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/redis/reader.hpp>

namespace holdfast::redis {

claimed_job decode_claimed(std::string id, std::string_view record, std::string_view what);
// As `show` in lua_job_reading.cpp gives it. The attempt that its record tells of, if there is one, is the history.
job_view decode_job(reader& from);
attempt_entry decode_attempt(reply& from);
std::pair<message_view, std::uint64_t> decode_message(reply& from); // and the token

} // namespace holdfast::redis
