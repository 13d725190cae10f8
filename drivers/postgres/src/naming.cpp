#include <holdfast/postgres/naming.hpp>

namespace holdfast::postgres {

std::string in_namespace(std::string_view sql, std::string_view name) {
    constexpr std::string_view mark = "{ns}";
    std::string text;
    text.reserve(sql.size() + 64 * name.size());
    for (std::size_t at = 0;;) {
        const std::size_t found = sql.find(mark, at);
        text += sql.substr(at, found - at);
        if (found == std::string_view::npos) return text;
        text += '"';
        text += name;
        text += '"';
        at = found + mark.size();
    }
}

std::string channel_name(std::string_view name) {
    return "holdfast_" + std::string(name); // as {ns}.ring says
}

std::int64_t advisory_number(std::string_view name, std::string_view kind, std::string_view key) {
    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    const auto mix = [&](std::string_view bytes) {
        for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
        hash = (hash ^ 0x1FFu) * 1099511628211u;
    };
    mix("holdfast");
    mix(name);
    mix(kind);
    mix(key);
    return static_cast<std::int64_t>(hash);
}

} // namespace holdfast::postgres
