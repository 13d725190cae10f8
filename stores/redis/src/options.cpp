#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace holdfast::redis {

namespace {

constexpr std::string_view form = "redis://[[user]:password@]host[:port][/database]";

std::optional<long> number(std::string_view text, long most) {
    long value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size() || value < 0 || value > most) return std::nullopt;
    return value;
}

std::optional<int> digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return std::nullopt;
}

std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto high = text[i] == '%' && i + 2 < text.size() ? digit(text[i + 1]) : std::nullopt;
        const auto low = high ? digit(text[i + 2]) : std::nullopt;
        if (!low) {
            out += text[i];
            continue;
        }
        out += static_cast<char>(*high * 16 + *low);
        i += 2;
    }
    return out;
}

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= 40 && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

} // namespace

result<address> address::parse(std::string_view url) {
    const auto wrong = [](std::string_view what) {
        return fail(errc::configuration, "url: " + std::string(what) + ", expected " + std::string(form));
    };
    if (url.starts_with("rediss://")) return fail(errc::configuration, "url: this build's client has no TLS");
    constexpr std::string_view scheme = "redis://";
    if (!url.starts_with(scheme)) return wrong("it does not start with redis://");
    url.remove_prefix(scheme.size());
    address a;
    if (const auto slash = url.find('/', url.rfind('@') == std::string_view::npos ? 0 : url.rfind('@'));
        slash != std::string_view::npos) {
        const auto text = url.substr(slash + 1);
        const auto database = text.empty() ? std::optional<long>(0) : number(text, 1'000'000);
        if (!database) return wrong("the database is not a number");
        a.database = static_cast<int>(*database);
        url = url.substr(0, slash);
    }
    if (const auto at = url.rfind('@'); at != std::string_view::npos) {
        const auto who = url.substr(0, at);
        const auto colon = who.find(':');
        if (colon == std::string_view::npos) return wrong("there is a user and no password");
        a.user = decoded(who.substr(0, colon));
        a.password = decoded(who.substr(colon + 1));
        url.remove_prefix(at + 1);
    }
    const auto bracket = url.starts_with('[') ? url.find(']') : std::string_view::npos;
    const auto colon = url.find(':', bracket == std::string_view::npos ? 0 : bracket);
    if (colon != std::string_view::npos) {
        const auto port = number(url.substr(colon + 1), 65535);
        if (!port || *port == 0) return wrong("the port is not a number from 1 to 65535");
        a.port = static_cast<std::uint16_t>(*port);
    }
    a.host = bracket == std::string_view::npos ? url.substr(0, colon) : url.substr(1, bracket - 1);
    if (a.host.empty()) return wrong("there is no host");
    return a;
}

std::string address::place() const {
    const bool six = host.find(':') != std::string::npos;
    return "Redis at " + (six ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/" + std::to_string(database);
}

options options::from(settings& from) {
    options o;
    auto where = address::parse(from.required_text("url"));
    if (!where) throw failed(where.error());
    o.where = std::move(*where);
    o.name = from.text("namespace", o.name);
    if (!is_name(o.name))
        throw failed(
            {errc::configuration, "namespace: expected 1 to 40 letters, digits and _, found \"" + o.name + "\"", {}});
    o.connections = static_cast<std::size_t>(from.integer("connections", 8, 1, 1000));
    o.timeout = from.time("timeout", o.timeout);
    if (o.timeout < std::chrono::milliseconds{1} || o.timeout > std::chrono::hours{1})
        throw failed({errc::configuration, "timeout: expected 1ms to 1h, found " + to_text(o.timeout), {}});
    o.max_payload = static_cast<std::size_t>(from.integer("max_payload", 10 << 20, 1, 256 << 20));
    o.keep_succeeded = from.time("keep_succeeded", o.keep_succeeded);
    o.keep_tombstones = from.time("keep_tombstones", o.keep_tombstones);
    return o;
}

} // namespace holdfast::redis
