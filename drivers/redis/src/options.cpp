#include <holdfast/redis/options.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

#include <holdfast/redis/client.hpp>

namespace holdfast::redis {

namespace {

std::unexpected<error> wrong(std::string_view what) {
    return fail(errc::configuration,
                std::string(what) + ", expected redis[s]://[[user]:password@]host[:port][,host[:port]…][/database] or "
                                    "redis-sentinel://[[user]:password@]host[:port][,host[:port]…]/master[/database]");
}

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

// host[:port], the host perhaps in brackets.
result<void> parse_server(std::string_view text, address& into) {
    const auto bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
    const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
    if (colon != std::string_view::npos) {
        const auto port = number(text.substr(colon + 1), 65535);
        if (!port || *port == 0) return wrong("the port is not a number from 1 to 65535");
        into.port = static_cast<std::uint16_t>(*port);
    }
    into.host = bracket == std::string_view::npos ? text.substr(0, colon) : text.substr(1, bracket - 1);
    if (into.host.empty()) return wrong("there is no host");
    return {};
}

// What comes after the servers: [/master][/database]
result<void> parse_path(std::string_view path, bool sentinels, address& into, std::string& master) {
    if (sentinels) {
        const auto slash = path.find('/');
        master = decoded(path.substr(0, slash));
        if (master.empty()) return wrong("there is no name of a master");
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    }
    const auto database = path.empty() ? std::optional<long>(0) : number(path, 1'000'000);
    if (!database) return wrong("the database is not a number");
    into.database = static_cast<int>(*database);
    return {};
}

// Of a list with commas, without what is empty.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const auto comma = text.find(',');
        if (const auto part = text.substr(0, comma); !part.empty()) parts.push_back(part);
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return parts;
}

[[noreturn]] void refuse(std::string message) {
    throw failed({errc::configuration, std::move(message), {}});
}

place_list checked(std::string_view key, std::string_view url) {
    auto where = place_list::parse(url);
    if (!where) refuse(std::string(key) + ": " + where.error().message);
    if (where->servers.front().tls && !client_has_tls())
        refuse(std::string(key) + ": TLS is asked for (rediss://), but this plugin was built with " +
               std::string(client_name()) +
               ", which has none; use redis://, or a plugin built with redis-plus-plus "
               "and TLS");
    return std::move(*where);
}

// Empty when there is none.
std::string file_of(settings& from, std::string_view key) {
    return from.text(key, "").empty() ? std::string() : from.required_path(key).string();
}

} // namespace

result<place_list> place_list::parse(std::string_view url) {
    place_list list;
    address common;
    const bool sentinels = url.starts_with("redis-sentinel://");
    common.tls = url.starts_with("rediss://");
    if (sentinels) common.port = 26379;
    else if (!common.tls && !url.starts_with("redis://")) return wrong("it does not start with redis://");
    url.remove_prefix(url.find("//") + 2);
    const auto login = url.rfind('@');
    const auto slash = url.find('/', login == std::string_view::npos ? 0 : login);
    const auto path = slash == std::string_view::npos ? std::string_view() : url.substr(slash + 1);
    if (auto ok = parse_path(path, sentinels, common, list.master); !ok) return std::unexpected(ok.error());
    url = url.substr(0, slash);
    if (login != std::string_view::npos) {
        const auto who = url.substr(0, login);
        const auto colon = who.find(':');
        if (colon == std::string_view::npos) return wrong("there is a user and no password");
        common.user = decoded(who.substr(0, colon));
        common.password = decoded(who.substr(colon + 1));
        url.remove_prefix(login + 1);
    }
    for (const std::string_view each : split(url)) {
        address a = common;
        if (auto ok = parse_server(each, a); !ok) return std::unexpected(ok.error());
        list.servers.push_back(std::move(a));
    }
    if (list.servers.empty()) return wrong("there is no host");
    return list;
}

std::string address::place() const {
    const bool six = host.find(':') != std::string::npos;
    return "Redis at " + (six ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/" + std::to_string(database);
}

std::vector<address> parse_servers(std::string_view key, std::string_view list, const address& like) {
    std::vector<address> all;
    for (const std::string_view each : split(list)) {
        address a = like;
        if (auto ok = parse_server(each, a); !ok)
            refuse(std::string(key) + ": expected host:port, found \"" + std::string(each) + "\"");
        all.push_back(std::move(a));
    }
    return all;
}

options options::from(settings& from, const std::string& default_name) {
    options o;
    o.where = checked("url", from.required_text("url"));
    o.sentinel_password = from.text("sentinel_password", "");
    const tls_files files{file_of(from, "tls_ca"), file_of(from, "tls_certificate"), file_of(from, "tls_key")};
    if (!o.where.servers.front().tls && !(files.ca + files.certificate + files.key).empty())
        refuse("tls_ca, tls_certificate and tls_key need a url that starts with rediss://");
    if (files.certificate.empty() != files.key.empty()) refuse("tls_certificate and tls_key need each other");
    for (address& each : o.where.servers) each.files = files;
    o.name = from.text("namespace", default_name);
    if (!is_name(o.name)) refuse("namespace: expected 1 to 40 letters, digits and _, found \"" + o.name + "\"");
    o.connections = static_cast<std::size_t>(from.integer("connections", 8, 1, 1000));
    o.timeout = from.time("timeout", o.timeout);
    if (o.timeout < std::chrono::milliseconds{1} || o.timeout > std::chrono::hours{1})
        refuse("timeout: expected 1ms to 1h, found " + to_text(o.timeout));
    o.max_payload = static_cast<std::size_t>(from.integer("max_payload", 10 << 20, 1, 256 << 20));
    return o;
}

} // namespace holdfast::redis
