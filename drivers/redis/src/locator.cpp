#include <holdfast/redis/locator.hpp>

#include <charconv>
#include <utility>

namespace holdfast::redis {

namespace {

std::optional<std::uint16_t> to_port(std::string_view text) {
    std::uint16_t port = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (problem != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
    return port;
}

} // namespace

std::optional<node> moved_to(const reply& r) {
    if (!r.is_error() || !r.text.starts_with("MOVED ")) return std::nullopt;
    const auto space = r.text.rfind(' ');
    const auto colon = r.text.rfind(':');
    if (colon == std::string::npos || colon < space) return std::nullopt;
    const auto port = to_port(std::string_view(r.text).substr(colon + 1));
    if (!port) return std::nullopt;
    return node{r.text.substr(space + 1, colon - space - 1), *port};
}

locator::locator(const options& how)
    : where_(how.where), sentinel_password_(how.sentinel_password), timeout_(how.timeout),
      last_(how.where.servers.front()), known_(how.where.master.empty()) {}

result<address> locator::find() {
    {
        const std::lock_guard lock(mutex_);
        if (known_) return last_;
    }
    auto found = ask_sentinels();
    if (!found) return found;
    const std::lock_guard lock(mutex_);
    known_ = true;
    last_ = *found;
    return found;
}

result<address> locator::ask_sentinels() {
    std::string problems;
    for (const address& each : where_.servers) {
        address sentinel = each;
        sentinel.user.clear();
        sentinel.password = sentinel_password_;
        sentinel.database = 0;
        const auto there = connect(sentinel, timeout_);
        const auto answer = there ? (*there)->call({"SENTINEL", "get-master-addr-by-name", where_.master})
                                  : result<reply>(std::unexpected(there.error()));
        const bool good = answer && answer->items.size() == 2;
        const auto port = good ? to_port(answer->items[1].text) : std::nullopt;
        if (port) {
            address master = each;
            master.host = answer->items[0].text;
            master.port = *port;
            return master;
        }
        problems += "; " + (answer ? sentinel.place() + (answer->is_error() ? ": " + answer->text : " does not know it")
                                   : answer.error().message);
    }
    return fail(errc::unavailable, "redis: no sentinel says where the master \"" + where_.master + "\" is" + problems);
}

bool locator::doubt(const address& found) {
    const std::lock_guard lock(mutex_);
    if (!last_.same_server(found)) return true; // somebody else has looked since
    if (asks_sentinels()) {
        known_ = false;
        return true;
    }
    const bool was_pointed_to = !where_.servers[at_].same_server(last_);
    if (!was_pointed_to) at_ = (at_ + 1) % where_.servers.size();
    last_ = where_.servers[at_];
    return !last_.same_server(found);
}

void locator::move_to(std::string host, std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    if (!host.empty()) last_.host = std::move(host);
    last_.port = port;
}

address locator::last() const {
    const std::lock_guard lock(mutex_);
    return last_;
}

} // namespace holdfast::redis
