#include <holdfast/redis/scripted_server.hpp>

#include <optional>
#include <random>

#include <holdfast/sleep.hpp>

namespace holdfast::redis {

namespace {

// CONFIG GET of one; nothing when the server does not say.
std::optional<std::string> config_value(const result<reply>& answer) {
    if (!answer || answer->what != reply::kind::list || answer->items.size() < 2) return std::nullopt;
    return answer->items[1].text;
}

// The value of a line "name:value" of INFO; nothing when the server does not say.
std::optional<std::string> info_value(const result<reply>& answer, std::string_view name) {
    if (!answer || answer->is_error()) return std::nullopt;
    const std::string line = "\n" + std::string(name) + ":";
    const auto at = answer->text.find(line);
    if (at == std::string::npos) return std::nullopt;
    const auto from = at + line.size();
    return answer->text.substr(from, answer->text.find_first_of("\r\n", from) - from);
}

} // namespace

std::string random_marker() {
    std::random_device device;
    std::string text;
    for (int i = 0; i < 24; ++i) text += "abcdefghijklmnopqrstuvwxyz234567"[device() % 32];
    return text;
}

error greeting_error(const address& where, std::string_view refusal) {
    const bool later = refusal.starts_with("LOADING") || refusal.starts_with("MASTERDOWN") ||
                       refusal.find("max number of clients") != std::string_view::npos;
    return {later ? errc::unavailable : errc::configuration, where.place() + ": " + std::string(refusal), {}};
}

error to_error(std::string_view refusal, const address& where, int schema) {
    const auto says = [&](std::string_view what) { return refusal.find(what) != std::string_view::npos; };
    if (says("HFERASED"))
        return {errc::configuration,
                where.place() + ": its data were erased, or replaced by others; prepare() starts anew",
                {}};
    if (says("HFKIND"))
        return {errc::configuration, where.place() + ": another kind of plugin has this namespace; choose another", {}};
    if (says("HFOLD")) return {errc::configuration, where.place() + ": it is older than Redis 6.2; update it", {}};
    if (const auto newer = refusal.find("HFNEWER "); newer != std::string_view::npos)
        return {errc::configuration,
                where.place() + ": its schema has version " + std::string(refusal.substr(newer + 8)) +
                    ", this plugin knows " + std::to_string(schema),
                {}};
    if (const auto older = refusal.find("HFNOSTEP "); older != std::string_view::npos)
        return {errc::configuration,
                where.place() + ": its schema has version " + std::string(refusal.substr(older + 9)) +
                    ", and this plugin does not know how to bring it to " + std::to_string(schema),
                {}};
    for (const std::string_view moving : {"TRYAGAIN", "ASK"})
        if (refusal.starts_with(moving))
            return {errc::unavailable, where.place() + ": the cluster is moving the slot; try again later", {}};
    for (const std::string_view later :
         {"LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "MOVED", "MISCONF", "OOM", "NOREPLICAS"})
        if (refusal.starts_with(later) || says(": -" + std::string(later))) // Redis 6 tells so from inside a script
            return {errc::unavailable, where.place() + ": " + std::string(refusal), {}};
    if (says("max number of clients")) return {errc::unavailable, where.place() + ": " + std::string(refusal), {}};
    for (const std::string_view login : {"NOAUTH", "WRONGPASS", "NOPERM"})
        if (refusal.starts_with(login)) return {errc::configuration, where.place() + ": " + std::string(refusal), {}};
    return {errc::internal, where.place() + ": " + std::string(refusal), {}};
}

error scripted_server::refused(std::string_view refusal) const {
    return to_error(refusal, places_.last(), scripts_.schema);
}

result<command> scripted_server::command_for(std::size_t which, arguments with) const {
    // The second key is never there: while a cluster moves our slot it refuses such a command as a whole. A script that
    // found some keys gone to the other node could do half of its work.
    command what = {"EVALSHA", {}, "2", key("meta"), key("none"), {}};
    {
        const std::lock_guard lock(mutex_);
        if (marker_.empty()) return fail(errc::invalid_argument, "redis: call prepare() before anything else");
        what[1] = hashes_[which];
        what[5] = marker_;
    }
    what.reserve(what.size() + with.values.size());
    for (std::string& each : with.values) what.push_back(std::move(each));
    return what;
}

result<reply> scripted_server::run_now(std::size_t which, command& what, std::optional<pool::connection> begun,
                                       access a) {
    const auto send = [&] {
        auto answer = connections_.call(what, std::exchange(begun, std::nullopt));
        if (a == access::read && !answer && answer.error().code == errc::unknown_outcome) {
            answer = command_now(what);
            if (!answer) answer.error().code = errc::unavailable; // a read has no outcome
        }
        return answer;
    };
    auto answer = send();
    if (answer && answer->is_error() && answer->text.starts_with("NOSCRIPT")) {
        what[0] = "EVAL"; // which loads it again
        what[1] = scripts_.all[which];
        answer = send();
    }
    if (answer && answer->is_error()) return std::unexpected(refused(answer->text));
    return answer;
}

task<result<reply>> scripted_server::run(std::size_t which, arguments with, access a) {
    std::optional<pool::connection> begun;
    error problem;
    try {
        auto what = command_for(which, std::move(with));
        if (!what) co_return std::unexpected(what.error());
        if (on_.borrow_thread()) co_return run_now(which, *what, std::nullopt, a);
        begun = connections_.begin(*what);
        const auto wait = [&] { return run_now(which, *what, std::exchange(begun, std::nullopt), a); };
        co_return co_await run_blocking(on_, threads_, wait);
    } catch (const failed& e) {
        problem = e.what_failed();
    } catch (const std::exception& e) {
        problem = {errc::internal, "redis: " + std::string(e.what()), {}};
    }
    if (begun) { // no thread was to be had for the answer
        connections_.abandon(std::move(*begun));
        if (a == access::write) problem.code = errc::unknown_outcome;
    }
    co_return std::unexpected(std::move(problem));
}

result<reply> scripted_server::run_here(std::size_t which, arguments with, access a) {
    auto what = command_for(which, std::move(with));
    if (!what) return std::unexpected(what.error());
    return run_now(which, *what, std::nullopt, a);
}

template <class T>
task<result<T>> scripted_server::blocking(result<T> (scripted_server::*function)()) {
    try {
        co_return co_await run_blocking(on_, threads_, [&] { return (this->*function)(); });
    } catch (const failed& e) {
        co_return std::unexpected(e.what_failed());
    } catch (const std::exception& e) {
        co_return fail(errc::internal, "redis: " + std::string(e.what()));
    }
}
template task<result<void>> scripted_server::blocking(result<void> (scripted_server::*)());
template task<result<store_time>> scripted_server::blocking(result<store_time> (scripted_server::*)());

result<void> scripted_server::load_scripts() {
    std::vector<command> loads;
    for (const std::string& each : scripts_.all) loads.push_back({"SCRIPT", "LOAD", each});
    auto answers = connections_.pipeline(loads);
    if (!answers) return fail(errc::unavailable, answers.error().message);
    const std::lock_guard lock(mutex_);
    hashes_.clear();
    for (reply& each : *answers) {
        if (each.is_error()) return std::unexpected(refused(each.text));
        hashes_.push_back(std::move(each.text));
    }
    return {};
}

// A server that throws keys away under pressure loses data without a word; a limit may be set later. Where CONFIG is not
// allowed INFO may tell; where nothing does, loses() says so.
result<void> scripted_server::check_memory(persistence& into) {
    const auto get = [&](const char* name) { return config_value(command_now({"CONFIG", "GET", name})); };
    const auto first = command_now({"CONFIG", "GET", "maxmemory-policy"});
    if (!first && first.error().code == errc::unknown_outcome) return fail(errc::unavailable, first.error().message);
    if (!first) return std::unexpected(first.error());
    auto policy = config_value(first);
    if (!policy) policy = info_value(command_now({"INFO", "memory"}), "maxmemory_policy");
    if (policy && *policy != "noeviction")
        return fail(errc::configuration, places_.last().place() + ": maxmemory-policy is " + *policy +
                                             ", which loses data when memory runs short; set it to noeviction");
    into.evicts_nothing = policy.has_value();
    const auto append = get("appendonly");
    const auto fsync = get("appendfsync");
    if (!append || !fsync) return {};
    into.known = true;
    into.append_only = *append == "yes";
    into.fsync = *fsync;
    return {};
}

result<void> scripted_server::prepare_now() {
    const auto first = command_now({"EXISTS", key("meta")}); // finds the node of a cluster that has our slot
    if (!first && first.error().code == errc::unknown_outcome) return fail(errc::unavailable, first.error().message);
    if (!first) return std::unexpected(first.error());
    if (first->is_error()) return std::unexpected(refused(first->text));
    persistence found;
    if (auto ok = check_memory(found); !ok) return ok;
    const auto answer = command_now({"EVAL", lua::prepare(scripts_), "2", key("meta"), key("none"),
                                     std::to_string(scripts_.schema), random_marker(), std::string(scripts_.kind)});
    if (!answer) return std::unexpected(answer.error());
    if (answer->is_error()) return std::unexpected(refused(answer->text));
    if (auto ok = load_scripts(); !ok) return ok;
    const bool alone = info_value(command_now({"INFO", "cluster"}), "cluster_enabled") == "0";
    const std::lock_guard lock(mutex_);
    alone_ = alone;
    marker_ = answer->text;
    keeps_ = found;
    return {};
}

result<void> scripted_server::destroy_now() {
    {
        const std::lock_guard lock(mutex_);
        marker_.clear();
    }
    // First what every script checks, so that nobody writes while the rest goes.
    auto answer = command_now({"DEL", key("meta")});
    std::string cursor = "0";
    do {
        if (!answer) return std::unexpected(answer.error());
        if (answer->is_error()) return std::unexpected(refused(answer->text));
        answer = command_now({"SCAN", cursor, "MATCH", key("*"), "COUNT", "1000"});
        if (!answer || answer->is_error() || answer->items.size() != 2) continue;
        cursor = answer->items[0].text;
        command unlink = {"UNLINK"};
        for (reply& each : answer->items[1].items) unlink.push_back(std::move(each.text));
        if (unlink.size() > 1) answer = command_now(unlink);
    } while (cursor != "0" || !answer || answer->is_error());
    return {};
}

result<store_time> scripted_server::time_now() {
    auto answer = command_now({"TIME"});
    if (!answer && answer.error().code == errc::unknown_outcome) answer = command_now({"TIME"});
    if (!answer) return fail(errc::unavailable, answer.error().message);
    if (answer->items.size() != 2) return std::unexpected(refused(answer->text));
    return store_time(std::chrono::seconds(std::stoll(answer->items[0].text)) +
                      std::chrono::microseconds(std::stoll(answer->items[1].text)));
}

bool scripted_server::prepared() const {
    const std::lock_guard lock(mutex_);
    return !marker_.empty();
}

bool scripted_server::stands_alone() const {
    const std::lock_guard lock(mutex_);
    return alone_;
}

survives persistence::writes_survive() const noexcept {
    if (!known || !append_only) return survives::process_crash;
    if (fsync == "always") return survives::power_loss;
    // While it syncs every second, the server answers before it has written: not even the system has it then.
    return fsync == "everysec" ? survives::process_crash : survives::server_crash;
}

std::string persistence::loses() const {
    const std::string replica = "after a failover, what the replica had not received";
    if (!known && !evicts_nothing)
        return "unknown: the server does not say how it keeps data, nor whether it evicts some when memory runs short; "
               "perhaps everything since its last snapshot";
    if (!known) return "unknown: the server does not say how it keeps data; perhaps everything since its last snapshot";
    if (!append_only) return "everything since the last snapshot when the server dies: appendonly is off";
    if (fsync == "always") return "nothing on one server; " + replica;
    if (fsync == "everysec")
        return "up to two seconds of writes when the server or its machine dies: appendfsync is everysec; " + replica;
    return "what the system had not written yet when the machine dies: appendfsync is no; " + replica;
}

persistence scripted_server::keeps() const {
    const std::lock_guard lock(mutex_);
    return keeps_;
}

} // namespace holdfast::redis
