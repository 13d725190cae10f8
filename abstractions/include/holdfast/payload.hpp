// What is kept and passed on without being looked at: bytes, and what they are.
#pragma once

#include <map>
#include <string>

namespace holdfast {

// `body` is any bytes, NUL and invalid UTF-8 included. The other fields are short UTF-8 text.
struct payload {
    std::string type; // names what the body is, for whoever decodes it
    int version = 1;
    std::string content_type = "application/json";
    std::string body;

    friend bool operator==(const payload&, const payload&) = default;
};

// Small text that travels along: traceparent, correlation id.
using headers = std::map<std::string, std::string, std::less<>>;

} // namespace holdfast
