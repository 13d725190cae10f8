#include "text.hpp"

#include <holdfast/store_limits.hpp>
#include <holdfast/timestamp.hpp>

namespace holdfast::cli {

namespace {

std::string in_units(std::chrono::microseconds length) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length).count();
    if (seconds < 60) return std::to_string(seconds) + " s";
    if (seconds < 3600) return std::to_string(seconds / 60) + " min";
    if (seconds < 172800) return std::to_string(seconds / 3600) + " h";
    return std::to_string(seconds / 86400) + " d";
}

} // namespace

std::string relative(store_time when, store_time now) {
    if (when > now) {
        const auto ahead = when - now;
        return ahead < std::chrono::seconds{1} ? "now" : "in " + in_units(ahead);
    }
    return now - when < std::chrono::seconds{1} ? "now" : in_units(now - when) + " ago";
}

std::string absolute(store_time when, store_time now) {
    return holdfast::to_text(when) + " (" + relative(when, now) + ")";
}

std::string one_line(std::string_view text, std::size_t longest) {
    std::string line;
    std::size_t characters = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
        const bool begins = (byte & 0xC0) != 0x80;
        if (begins && ++characters > longest) return line + "…";
        const bool wide_control = byte == 0xC2 && next >= 0x80 && next <= 0x9F; // U+0080 to U+009F
        line += byte < 0x20 || byte == 0x7F || wide_control ? ' ' : text[i];
        if (wide_control) ++i;
    }
    return line;
}

std::string why(std::string_view type, std::string_view message) {
    if (type.empty()) return std::string(message);
    return message.empty() ? std::string(type) : std::string(type) + ": " + std::string(message);
}

std::string body_text(const payload& what) {
    constexpr std::size_t longest = 4096;
    if (what.body.empty()) return "(empty)";
    if (what.body.size() <= longest && store_limits::is_text(what.body)) return one_line(what.body, longest);
    return "(" + std::to_string(what.body.size()) + " bytes of " + one_line(what.content_type) + ")";
}

} // namespace holdfast::cli
