// A compiled time zone (TZif, RFC 8536), as machines keep them under zoneinfo.
#pragma once

#include <memory>
#include <string_view>

#include <holdfast/time_zone.hpp>

namespace holdfast {

// Takes the bytes of the file, version 2 or later. The message says what is wrong with them.
result<std::unique_ptr<time_zone>> read_zone_file(std::string_view bytes);

} // namespace holdfast
