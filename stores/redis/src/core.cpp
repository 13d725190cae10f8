#include "core.hpp"

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

error to_error(std::string_view refusal, const address& where) {
    const auto says = [&](std::string_view what) { return refusal.find(what) != std::string_view::npos; };
    if (says("HFERASED"))
        return {errc::configuration,
                where.place() + ": the data of this store were erased, or replaced by others; prepare() starts anew",
                {}};
    if (says("HFOLD")) return {errc::configuration, where.place() + ": it is older than Redis 6.2; update it", {}};
    if (const auto newer = refusal.find("HFNEWER "); newer != std::string_view::npos)
        return {errc::configuration,
                where.place() + ": its schema has version " + std::string(refusal.substr(newer + 8)) +
                    ", this plugin knows " + std::to_string(schema_version),
                {}};
    for (const std::string_view moving : {"TRYAGAIN", "ASK"})
        if (refusal.starts_with(moving))
            return {
                errc::unavailable, where.place() + ": the cluster is moving this store's slot; try again later", {}};
    for (const std::string_view later :
         {"LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "MOVED", "MISCONF", "OOM", "NOREPLICAS"})
        if (refusal.starts_with(later)) return {errc::unavailable, where.place() + ": " + std::string(refusal), {}};
    if (says("max number of clients")) return {errc::unavailable, where.place() + ": " + std::string(refusal), {}};
    for (const std::string_view login : {"NOAUTH", "WRONGPASS", "NOPERM"})
        if (refusal.starts_with(login)) return {errc::configuration, where.place() + ": " + std::string(refusal), {}};
    return {errc::internal, where.place() + ": " + std::string(refusal), {}};
}

result<reply> core::run_now(script which, arguments& with, access a) {
    const auto at = static_cast<std::size_t>(which);
    // The second key is never there: while a cluster moves our slot it refuses such a command as a whole. A script that
    // found some keys gone to the other node could do half of its work.
    command what = {"EVALSHA", {}, "2", key("meta"), key("none"), {}};
    {
        const std::lock_guard lock(mutex_);
        if (marker_.empty()) return fail(errc::invalid_argument, "redis: call prepare() before anything else");
        what[1] = hashes_[at];
        what[5] = marker_;
    }
    what.reserve(what.size() + with.values.size());
    for (std::string& each : with.values) what.push_back(std::move(each));
    const auto send = [&] {
        auto answer = command_now(what);
        if (a == access::read && !answer && answer.error().code == errc::unknown_outcome) {
            answer = command_now(what);
            if (!answer) answer.error().code = errc::unavailable; // a read has no outcome
        }
        return answer;
    };
    auto answer = send();
    if (answer && answer->is_error() && answer->text.starts_with("NOSCRIPT")) {
        what[0] = "EVAL"; // which loads it again
        what[1] = script_text(which);
        answer = send();
    }
    if (answer && answer->is_error()) return std::unexpected(to_error(answer->text, places_.last()));
    return answer;
}

task<result<reply>> core::run(script which, arguments with, access a) {
    try {
        co_return co_await run_blocking(on, [&] { return run_now(which, with, a); });
    } catch (const failed& e) {
        co_return std::unexpected(e.what_failed());
    } catch (const std::exception& e) {
        co_return fail(errc::internal, "redis: " + std::string(e.what()));
    }
}

template <class T>
task<result<T>> core::blocking(result<T> (core::*function)()) {
    try {
        co_return co_await run_blocking(on, [&] { return (this->*function)(); });
    } catch (const failed& e) {
        co_return std::unexpected(e.what_failed());
    } catch (const std::exception& e) {
        co_return fail(errc::internal, "redis: " + std::string(e.what()));
    }
}
template task<result<void>> core::blocking(result<void> (core::*)());
template task<result<store_time>> core::blocking(result<store_time> (core::*)());

result<void> core::load_scripts() {
    std::vector<command> loads;
    for (std::size_t i = 0; i < script_count; ++i)
        loads.push_back({"SCRIPT", "LOAD", script_text(static_cast<script>(i))});
    auto answers = connections_.pipeline(loads);
    if (!answers) return fail(errc::unavailable, answers.error().message);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < script_count; ++i) {
        const reply& each = answers->at(i);
        if (each.is_error()) return std::unexpected(to_error(each.text, places_.last()));
        hashes_[i] = each.text;
    }
    return {};
}

// A server that throws keys away under pressure loses jobs without a word.
result<void> core::check_memory(persistence& into) {
    const auto get = [&](const char* name) { return config_value(command_now({"CONFIG", "GET", name})); };
    const auto first = command_now({"CONFIG", "GET", "maxmemory"});
    if (!first && first.error().code == errc::unknown_outcome) return fail(errc::unavailable, first.error().message);
    if (!first) return std::unexpected(first.error());
    const auto limit = config_value(first);
    const auto policy = get("maxmemory-policy");
    if (limit && policy && *limit != "0" && *policy != "noeviction")
        return fail(errc::configuration, places_.last().place() + ": maxmemory is set and maxmemory-policy is " +
                                             *policy + ", which loses jobs; set it to noeviction");
    const auto append = get("appendonly");
    const auto fsync = get("appendfsync");
    if (append && fsync) into = {true, *append == "yes", *fsync};
    return {};
}

result<void> core::prepare_now() {
    const auto first = command_now({"EXISTS", key("meta")}); // finds the node of a cluster that has our slot
    if (!first && first.error().code == errc::unknown_outcome) return fail(errc::unavailable, first.error().message);
    if (!first) return std::unexpected(first.error());
    if (first->is_error()) return std::unexpected(to_error(first->text, places_.last()));
    persistence found;
    if (auto ok = check_memory(found); !ok) return ok;
    const auto answer = command_now({"EVAL", script_text(script::prepare), "2", key("meta"), key("none"),
                                     std::to_string(schema_version), random_marker()});
    if (!answer) return std::unexpected(answer.error());
    if (answer->is_error()) return std::unexpected(to_error(answer->text, places_.last()));
    if (auto ok = load_scripts(); !ok) return ok;
    const std::lock_guard lock(mutex_);
    marker_ = answer->text;
    keeps_ = found;
    return {};
}

result<void> core::destroy_now() {
    {
        const std::lock_guard lock(mutex_);
        marker_.clear();
    }
    // First what every script checks, so that nobody writes while the rest goes.
    auto answer = command_now({"DEL", key("meta")});
    std::string cursor = "0";
    do {
        if (!answer) return std::unexpected(answer.error());
        if (answer->is_error()) return std::unexpected(to_error(answer->text, places_.last()));
        answer = command_now({"SCAN", cursor, "MATCH", key("*"), "COUNT", "1000"});
        if (!answer || answer->is_error() || answer->items.size() != 2) continue;
        cursor = answer->items[0].text;
        command unlink = {"UNLINK"};
        for (reply& each : answer->items[1].items) unlink.push_back(std::move(each.text));
        if (unlink.size() > 1) answer = command_now(unlink);
    } while (cursor != "0" || !answer || answer->is_error());
    return {};
}

result<store_time> core::time_now() {
    auto answer = command_now({"TIME"});
    if (!answer && answer.error().code == errc::unknown_outcome) answer = command_now({"TIME"});
    if (!answer) return fail(errc::unavailable, answer.error().message);
    if (answer->items.size() != 2) return std::unexpected(to_error(answer->text, places_.last()));
    return store_time(std::chrono::seconds(std::stoll(answer->items[0].text)) +
                      std::chrono::microseconds(std::stoll(answer->items[1].text)));
}

bool core::prepared() const {
    const std::lock_guard lock(mutex_);
    return !marker_.empty();
}

persistence core::keeps() const {
    const std::lock_guard lock(mutex_);
    return keeps_;
}

} // namespace holdfast::redis
