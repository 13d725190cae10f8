#include <holdfast/redis/texts.hpp>

#include <charconv>

#include <holdfast/error.hpp>
#include <holdfast/redis/reader.hpp>

namespace holdfast::redis {

namespace {

[[noreturn]] void surprised() {
    throw failed({errc::internal, "redis: a record has a form that this plugin does not know", {}});
}

} // namespace

void append_text(std::string& to, std::string_view text) {
    to.append(std::to_string(text.size())).append(":").append(text);
}

std::vector<std::string> split_texts(std::string_view packed) {
    std::vector<std::string> texts;
    while (!packed.empty()) {
        std::size_t size = 0;
        const auto [end, problem] = std::from_chars(packed.data(), packed.data() + packed.size(), size);
        const auto digits = static_cast<std::size_t>(end - packed.data());
        if (problem != std::errc{} || digits == packed.size() || *end != ':' || size > packed.size() - digits - 1)
            surprised();
        texts.emplace_back(packed.substr(digits + 1, size));
        packed.remove_prefix(digits + 1 + size);
    }
    return texts;
}

std::string encode(const headers& extra) {
    std::string text;
    for (const auto& [name, value] : extra) {
        append_text(text, name);
        append_text(text, value);
    }
    return text;
}

std::string encode(const payload& what, const headers& extra) {
    std::string text;
    text.reserve(what.body.size() + what.type.size() + what.content_type.size() + 32);
    append_text(text, what.type);
    append_text(text, std::to_string(what.version));
    append_text(text, what.content_type);
    append_text(text, what.body);
    append_text(text, encode(extra));
    return text;
}

headers to_headers(std::vector<std::string> texts) {
    headers all;
    if (texts.size() % 2 != 0) surprised();
    for (std::size_t i = 0; i < texts.size(); i += 2) all[std::move(texts[i])] = std::move(texts[i + 1]);
    return all;
}

void take_what(std::string_view packed, payload& what, headers& extra) {
    auto texts = split_texts(packed);
    if (texts.size() != 5) surprised();
    what.type = std::move(texts[0]);
    what.version = static_cast<int>(to_number(texts[1]));
    what.content_type = std::move(texts[2]);
    what.body = std::move(texts[3]);
    extra = to_headers(split_texts(texts[4]));
}
} // namespace holdfast::redis
