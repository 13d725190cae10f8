#include <holdfast/postgres/options.hpp>

#include <algorithm>
#include <vector>

namespace holdfast::postgres {

namespace {

constexpr std::string_view schemes[] = {"postgresql://", "postgres://"};

std::string_view without_scheme(std::string_view url) {
    for (const std::string_view scheme : schemes)
        if (url.starts_with(scheme)) return url.substr(scheme.size());
    return {};
}

// The value of `key=` in a connection string of either form; quotes are left on.
std::string_view parameter(std::string_view url, std::string_view key) {
    for (std::size_t at = url.find(key); at != std::string_view::npos; at = url.find(key, at + 1)) {
        const bool starts = at == 0 || url[at - 1] == ' ' || url[at - 1] == '&' || url[at - 1] == '?';
        std::string_view rest = url.substr(at + key.size());
        if (!starts || !rest.starts_with('=')) continue;
        rest.remove_prefix(1);
        if (rest.starts_with('\'')) return rest.substr(0, rest.find('\'', 1) + 1);
        return rest.substr(0, rest.find_first_of(" &"));
    }
    return {};
}

std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%' || i + 2 >= text.size()) {
            out += text[i];
            continue;
        }
        out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
    }
    return out;
}

std::vector<std::string> secrets(std::string_view url) {
    std::vector<std::string> all;
    const auto add = [&](std::string_view secret) {
        if (secret.empty()) return;
        all.emplace_back(secret);
        try {
            all.push_back(decoded(secret));
        } catch (const std::exception&) { // not percent-encoded after all
        }
        if (secret.starts_with('\'') && secret.size() > 2) all.emplace_back(secret.substr(1, secret.size() - 2));
    };
    const std::string_view rest = without_scheme(url);
    const std::string_view user = rest.substr(0, rest.substr(0, rest.find('/')).rfind('@') + 1);
    if (const auto colon = user.find(':'); colon != std::string_view::npos)
        add(user.substr(colon + 1, user.size() - colon - 2));
    add(parameter(url, "password"));
    add(parameter(url, "sslpassword"));
    std::ranges::sort(all, std::ranges::greater{}, &std::string::size);
    return all;
}

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= 40 && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

} // namespace

options options::from(settings& from, const std::string& default_name) {
    options o;
    o.url = from.required_text("url");
    o.connections = static_cast<std::size_t>(from.integer("connections", 8, 1, 1000));
    o.name = from.text("namespace", default_name);
    if (!is_name(o.name) || o.name.starts_with("pg_"))
        throw failed(
            {errc::configuration,
             "namespace: expected 1 to 40 letters, digits and _, not starting with pg_, found \"" + o.name + "\"",
             {}});
    o.max_payload = static_cast<std::size_t>(from.integer("max_payload", 10 << 20, 1, 512 << 20));
    o.statement_timeout = from.time("statement_timeout", o.statement_timeout);
    o.listen_check = from.time("listen_check", o.listen_check);
    if (o.listen_check <= duration::zero())
        throw failed({errc::configuration, "listen_check: expected a time longer than 0", {}});
    o.pooler = from.flag("pooler", false);
    return o;
}

std::string options::connect_url() const {
    std::string text = url;
    const bool uri = !without_scheme(url).empty();
    const auto add = [&](std::string_view key, std::string_view value) {
        if (!parameter(url, key).empty()) return;
        text += uri ? (text.find('?') == std::string::npos ? "?" : "&") : " ";
        text.append(key).append("=").append(value);
    };
    add("fallback_application_name", "holdfast");
    add("connect_timeout", "10");
    return text;
}

std::string options::place() const {
    const std::string_view rest = without_scheme(url);
    std::string text;
    if (!rest.empty()) {
        const std::string_view authority = rest.substr(0, rest.find('?'));
        const std::size_t at = authority.substr(0, authority.find('/')).rfind('@');
        text = authority.substr(at == std::string_view::npos ? 0 : at + 1);
    } else {
        for (const std::string_view key : {"host", "port", "dbname"}) {
            const std::string_view value = parameter(url, key);
            if (!value.empty()) text.append(text.empty() ? "" : " ").append(key).append("=").append(value);
        }
    }
    return text.empty() ? "PostgreSQL" : "PostgreSQL at " + text;
}

std::string options::without_secrets(std::string message) const {
    for (const std::string& secret : secrets(url))
        for (std::size_t at = message.find(secret); at != std::string::npos; at = message.find(secret, at + 3))
            message.replace(at, secret.size(), "***");
    while (message.ends_with('\n') || message.ends_with(' ')) message.pop_back();
    return message;
}

} // namespace holdfast::postgres
