// Texts with their lengths in front, so that anything may be inside. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/payload.hpp>

namespace holdfast::redis {

void append_text(std::string& to, std::string_view text);
// Throws failed(errc::internal) when it is none.
std::vector<std::string> split_texts(std::string_view packed);

std::string encode(const headers& extra);
std::string encode(const payload& what, const headers& extra);
headers to_headers(std::vector<std::string> texts);
// As encode(payload, headers) wrote it.
void take_what(std::string_view packed, payload& what, headers& extra);

} // namespace holdfast::redis
