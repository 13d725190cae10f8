#include <holdfast/redis/pool.hpp>

#include <utility>

namespace holdfast::redis {

namespace {

constexpr int most_redirections = 5;

// A master that lost its office closes its connections, so to ask at the beginning is enough.
result<void> check_master(client& of, const address& where) {
    const auto role = of.call({"ROLE"});
    if (!role) return fail(errc::unavailable, role.error().message);
    if (role->is_error() || role->items.empty() || role->items[0].text == "master") return {};
    return fail(errc::unavailable, where.place() + ": it is a " + role->items[0].text + ", not the master any more");
}

} // namespace

result<pool::connection> pool::open() {
    result<connection> opened;
    for (int i = 0; i < most_redirections; ++i) {
        auto where = places_.find();
        if (!where) return std::unexpected(where.error());
        auto made = connect(*where, timeout_);
        if (made && places_.asks_sentinels())
            if (auto ok = check_master(**made, *where); !ok) made = std::unexpected(ok.error());
        if (made) return connection{std::move(*made), std::move(*where)};
        const bool same = !opened && i > 0 && made.error().message == opened.error().message;
        opened = std::unexpected(made.error());
        if (same || made.error().code != errc::unavailable || !places_.doubt(*where)) return opened;
    }
    return opened;
}

result<pool::connection> pool::take() {
    connection found;
    {
        std::unique_lock lock(mutex_);
        if (!freed_.wait_for(lock, timeout_, [&] { return out_ < most_; }))
            return fail(errc::unavailable, places_.last().place() + ": all " + std::to_string(most_) +
                                               " connections are busy; there was none for " + to_short_text(timeout_));
        ++out_;
        if (!idle_.empty()) {
            found = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    if (found.to != nullptr && found.to->usable() && found.where.same_server(places_.last())) return found;
    auto opened = open();
    if (!opened) put({});
    return opened;
}

void pool::put(connection used) noexcept {
    if (used.to != nullptr && !used.to->usable()) used.to.reset();
    {
        const std::lock_guard lock(mutex_);
        --out_;
        if (used.to != nullptr && idle_.size() < most_) idle_.push_back(std::move(used));
    }
    freed_.notify_one();
}

std::optional<pool::connection> pool::begin(const command& what) {
    connection found;
    {
        const std::lock_guard lock(mutex_);
        // The others stay for calls that have a thread already: were all begun, those might hold every thread, waiting for one.
        if (out_ >= most_ / 2 || idle_.empty()) return std::nullopt;
        ++out_;
        found = std::move(idle_.back());
        idle_.pop_back();
    }
    if (found.where.same_server(places_.last()) && found.to->begin(what)) return found;
    put(std::move(found));
    return std::nullopt;
}

void pool::abandon(connection begun) noexcept {
    begun.to.reset();
    put(std::move(begun));
}

result<reply> pool::call(const command& what, std::optional<connection> begun) {
    result<reply> answer;
    for (int i = 0; i < most_redirections; ++i) {
        const bool sent = begun.has_value();
        auto taken = sent ? result<connection>(*std::exchange(begun, std::nullopt)) : take();
        if (!taken) return std::unexpected(taken.error());
        answer = sent ? taken->to->answer() : taken->to->call(what);
        const address where = taken->where;
        const bool was_demoted = answer && answer->is_error() && answer->text.find("READONLY") != std::string::npos;
        if (was_demoted && places_.asks_sentinels()) taken->to.reset();
        put(std::move(*taken));
        if (!answer) return answer;
        if (const auto elsewhere = moved_to(*answer)) places_.move_to(elsewhere->host, elsewhere->port);
        else if (!was_demoted || !places_.doubt(where)) return answer; // refused: it may be said again elsewhere
    }
    return answer;
}

result<std::vector<reply>> pool::pipeline(std::span<const command> all) {
    auto taken = take();
    if (!taken) return std::unexpected(taken.error());
    auto answers = taken->to->pipeline(all);
    put(std::move(*taken));
    return answers;
}

} // namespace holdfast::redis
