#include "redlock.hpp"

#include <algorithm>

#include <holdfast/store_limits.hpp>
#include <holdfast/when_all.hpp>

#include "facets.hpp"

namespace holdfast::redis {

namespace {

// How much sooner a server's clock may end a lock than ours: one part in a hundred, and what rounding takes.
duration drift(duration ttl) {
    return ttl / 100 + std::chrono::milliseconds{2};
}

store_options only(const store_options& how, const address& server) {
    store_options one = how;
    one.where = {{server}, {}};
    one.lock_servers.clear();
    return one;
}

error too_few(std::size_t needed, std::size_t of, const std::string& problem) {
    return {errc::unavailable,
            "redis: a lock needs " + std::to_string(needed) + " of the " + std::to_string(of) +
                " lock_servers, fewer answer; one of the others: " + problem,
            {}};
}

} // namespace

redlock_facet::redlock_facet(const store_options& how, runtime& on) : on_(on), timeout_(how.timeout) {
    for (const address& each : how.lock_servers) servers_.push_back(std::make_unique<core>(only(how, each), on));
}

std::vector<core*> redlock_facet::all() const {
    std::vector<core*> found;
    for (const auto& each : servers_) found.push_back(each.get());
    return found;
}

survives redlock_facet::writes_survive() const {
    survives weakest = survives::power_loss;
    for (const auto& each : servers_) weakest = std::min(weakest, each->keeps().writes_survive());
    return weakest;
}

// A server that was away when the others were prepared is prepared now.
task<redlock_facet::answer> redlock_facet::ask(core* server, script which, arguments with, decoder decode) {
    if (!server->prepared()) {
        auto preparing = server->blocking(&core::prepare_now);
        if (auto ready = co_await std::move(preparing); !ready) co_return answer{.problem = ready.error().message};
    }
    auto running = server->run(which, std::move(with), access::write);
    auto said = co_await std::move(running);
    if (!said) co_return answer{.problem = said.error().message};
    co_return decode(*said);
}

task<std::vector<redlock_facet::answer>> redlock_facet::ask_all(std::vector<core*> which, script what, arguments with,
                                                                decoder decode) {
    std::vector<task<answer>> asked;
    for (core* each : which) asked.push_back(ask(each, what, with, decode));
    auto answers = when_all(std::move(asked));
    co_return co_await std::move(answers);
}

task<redlock_facet::ballot> redlock_facet::take_back(std::string resource, std::string by) {
    arguments with;
    with.add(std::move(resource)).add(std::move(by));
    auto asking = ask_all(all(), script::lock_release, std::move(with), [](reply&) { return answer{vote::yes}; });
    auto answers = co_await std::move(asking);
    ballot votes;
    for (answer& each : answers) votes.count(nullptr, std::move(each));
    co_return votes;
}

redlock_facet::answer redlock_facet::to_vote(reply& from) {
    return {.said = from.number == 0 ? vote::no : vote::yes};
}

void redlock_facet::ballot::count(core* server, answer each) {
    if (each.said == vote::unknown) problem = std::move(each.problem);
    if (each.said == vote::no) ++no;
    if (each.said == vote::yes) yes.push_back(server);
    promised_to_another = promised_to_another || each.promised_to_another;
    token = std::max(token, each.token);
}

// The servers are asked in their order until one answers, and only its choice goes on to the rest: so of many that come
// at once one gets the lock, instead of a server each.
task<result<std::optional<lock_lease>>> redlock_facet::try_acquire(std::string resource, duration ttl) {
    if (auto ok = store_limits::check_key("resource", resource); !ok) co_return std::unexpected(ok.error());
    if (auto ok = check_lock_time(ttl); !ok) co_return std::unexpected(ok.error());
    const std::string me = "?" + random_marker(); // no token
    arguments wish;
    wish.add(resource).add(me).add(std::min(ttl, 3 * timeout_)); // outlives the wait for a silent server
    const decoder heard = [](reply& r) {
        if (r.what == reply::kind::text) return answer{.said = vote::yes, .token = std::stod(r.text)};
        return answer{.said = vote::no, .promised_to_another = r.number == 1};
    };
    std::vector<core*> rest = all();
    ballot votes;
    while (!rest.empty() && votes.yes.empty() && votes.no == 0) {
        auto asking = ask(rest.front(), script::lock_promise, wish, heard);
        votes.count(rest.front(), co_await std::move(asking));
        rest.erase(rest.begin());
    }
    if (votes.promised_to_another) co_return std::optional<lock_lease>();
    auto asking = ask_all(rest, script::lock_promise, wish, heard);
    auto answers = co_await std::move(asking);
    for (std::size_t i = 0; i < rest.size(); ++i) votes.count(rest[i], std::move(answers[i]));

    if (votes.yes.size() < majority()) {
        auto taking_back = take_back(resource, me);
        co_await std::move(taking_back);
        if (votes.yes.size() + votes.no < majority())
            co_return std::unexpected(too_few(majority(), servers_.size(), votes.problem));
        co_return std::optional<lock_lease>();
    }
    auto confirming = confirm(std::move(resource), me, ttl, std::move(votes));
    co_return co_await std::move(confirming);
}

task<result<std::optional<lock_lease>>> redlock_facet::confirm(std::string resource, std::string me, duration ttl,
                                                               ballot promised) {
    const auto token = static_cast<std::uint64_t>(promised.token);
    arguments with;
    with.add(resource).add(me).add(token).add(ttl);
    const auto begun = on_.now();
    auto asking = ask_all(promised.yes, script::lock_confirm, std::move(with), &to_vote);
    auto answers = co_await std::move(asking);
    ballot votes;
    for (answer& each : answers) votes.count(nullptr, std::move(each));
    const bool in_time = on_.now() - begun < ttl - drift(ttl);
    if (votes.yes.size() >= majority() && in_time)
        co_return std::optional<lock_lease>(lock_lease(std::move(resource), token));
    for (const std::string& name : {me, std::to_string(token)}) {
        auto taking_back = take_back(resource, name);
        co_await std::move(taking_back);
    }
    if (!in_time)
        co_return fail(errc::unavailable,
                       "redis: the lock_servers took longer than the lock was to last, " + to_short_text(ttl));
    if (votes.yes.size() + votes.no >= majority()) co_return std::optional<lock_lease>();
    co_return std::unexpected(too_few(majority(), servers_.size(), votes.problem));
}

task<result<void>> redlock_facet::renew(const lock_lease& held, duration ttl) {
    if (auto ok = check_lock_time(ttl); !ok) co_return ok;
    arguments with;
    with.add(&held).add(ttl);
    const auto begun = on_.now();
    auto asking = ask_all(all(), script::lock_renew, std::move(with), &to_vote);
    auto answers = co_await std::move(asking);
    ballot votes;
    for (answer& each : answers) votes.count(nullptr, std::move(each));
    if (votes.yes.size() >= majority() && on_.now() - begun < ttl - drift(ttl)) co_return result<void>();
    if (servers_.size() - votes.no < majority())
        co_return fail(errc::stale_lease, "redis: the lock has run out or was given back on most lock_servers");
    co_return std::unexpected(too_few(majority(), servers_.size(), votes.problem));
}

task<result<void>> redlock_facet::release(const lock_lease& held) {
    auto taking_back = take_back(held.subject(), std::to_string(held.token()));
    const ballot votes = co_await std::move(taking_back);
    if (votes.yes.size() >= majority()) co_return result<void>();
    co_return std::unexpected(too_few(majority(), servers_.size(), votes.problem));
}

task<result<void>> redlock_facet::on_each(result<void> (scripted_server::*what)()) {
    std::vector<task<result<void>>> started;
    for (const auto& each : servers_) started.push_back(each->blocking(what));
    auto all_of_them = when_all(std::move(started));
    const auto answers = co_await std::move(all_of_them);
    std::size_t good = 0;
    std::string problem;
    for (const auto& each : answers) {
        if (each) ++good;
        else if (each.error().code != errc::unavailable) co_return each;
        else problem = each.error().message;
    }
    if (good >= majority()) co_return result<void>();
    co_return std::unexpected(too_few(majority(), servers_.size(), problem));
}

} // namespace holdfast::redis
