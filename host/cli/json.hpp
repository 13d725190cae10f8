// JSON for `--json`: composes text, and escapes it.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// Quoted and escaped; bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

// Pairs of a name and a value that is JSON already.
class json_object {
public:
    json_object& add(std::string_view name, std::string_view json) {
        body_ += (body_.empty() ? "" : ",") + json_text(name) + ":" + std::string(json);
        return *this;
    }
    json_object& add_text(std::string_view name, std::string_view value) { return add(name, json_text(value)); }
    std::string text() const { return "{" + body_ + "}"; }

private:
    std::string body_;
};

class json_array {
public:
    json_array& add(std::string_view json) {
        body_ += (body_.empty() ? "" : ",") + std::string(json);
        return *this;
    }
    std::string text() const { return "[" + body_ + "]"; }

private:
    std::string body_;
};

} // namespace holdfast::cli
