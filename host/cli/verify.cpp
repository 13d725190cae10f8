#include <charconv>
#include <iostream>

#include <unistd.h>

#include <holdfast/conformance.hpp>
#include <holdfast/event_conformance.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/store_conformance.hpp>
#include <holdfast/sync_wait.hpp>

#include "allocations.hpp"
#include "child_rival.hpp"
#include "commands.hpp"
#include "held_runtime.hpp"
#include "held_store.hpp"
#include "held_transport.hpp"
#include "verify_again.hpp"
#include "verify_report.hpp"

namespace holdfast::cli {

namespace {

settings read_options(const arguments& given) {
    settings values("the plugin");
    for (const std::string& each : given.values("--option")) {
        const std::size_t equals = each.find('=');
        if (equals == 0 || equals == each.npos) throw usage_error("--option " + each + ": expected KEY=VALUE");
        values.set(each.substr(0, equals), each.substr(equals + 1), "--option " + each);
    }
    return values;
}

std::uint64_t read_seed(const arguments& given) {
    const std::string text = given.value("--seed").value_or("1");
    std::uint64_t seed = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (problem != std::errc{} || end != text.data() + text.size())
        throw usage_error("--seed " + text + ": expected a whole number");
    return seed;
}

template <class Report>
int run_runtime_suite(const loaded_plugin& plugin, const arguments& given, Report to) {
    null_logger log;
    const settings with = read_options(given);
    const auto make = [&]() -> std::unique_ptr<runtime> {
        auto made = create_runtime(plugin, with, log);
        if (!made) throw failed(std::move(made.error()));
        return std::make_unique<held_runtime>(std::move(*made));
    };
    make(); // so that one that cannot start says so once
    const conformance::options how{
        .seed = read_seed(given), .filter = given.value("--filter").value_or(""), .allocations = allocation_counter()};
    const auto total = conformance::run_runtime_suite(make, how, [&](const case_result& r) { to.add(r); });
    return end(to, plugin, given, total);
}

// "Survives: power loss. Loses: nothing acknowledged."
template <class Capabilities>
std::string durability_of(const Capabilities& can) {
    std::string loses = can.loses;
    if (loses.ends_with('.')) loses.pop_back();
    return "Survives: " + std::string(holdfast::to_text(can.writes_survive)) + ". Loses: " + loses + ".";
}

// What a store that conforms has shown: "locks, jobs. Survives: power loss. Loses: nothing acknowledged."
std::string closing_of(store& shown) {
    std::string offered;
    const auto add = [&](bool has, const char* name) {
        if (has) offered += (offered.empty() ? "" : ", ") + std::string(name);
    };
    add(shown.jobs() != nullptr, "jobs");
    add(shown.idempotency() != nullptr, "idempotency");
    add(shown.locks() != nullptr, "locks");
    add(shown.outbox() != nullptr, "outbox");
    return offered + ". " + durability_of(shown.capabilities());
}

// Makes instances of one plugin, each fresh one in a namespace of its own.
template <class Interface, class Held, auto Create>
class maker {
public:
    maker(const loaded_plugin& plugin, settings with, runtime& on) : plugin_(plugin), with_(std::move(with)), on_(on) {}

    // `more` settings go before those of the command line.
    std::unique_ptr<Interface> fresh(const conformance::transport_settings& more = {}) {
        ++number_;
        more_ = more;
        return again();
    }
    std::unique_ptr<Interface> again() { return in(space()); }
    std::string space() const { return "hf_verify_" + std::to_string(::getpid()) + "_" + std::to_string(number_); }
    std::unique_ptr<Interface> in(const std::string& space) {
        settings with = with_;
        for (const auto& [key, value] : more_) with.set(key, value);
        with.set("namespace", space);
        auto made = Create(plugin_, std::move(with), log_, on_);
        if (!made) throw failed(std::move(made.error()));
        return std::make_unique<Held>(std::move(*made));
    }

private:
    const loaded_plugin& plugin_;
    settings with_;
    runtime& on_;
    null_logger log_;
    conformance::transport_settings more_;
    int number_ = 0;
};

std::unique_ptr<runtime> make_runtime(const arguments& given, logger& log) {
    const std::string name = given.value("--runtime").value_or("asio");
    auto plugin = name.find('/') != name.npos
                      ? load_plugin(name)
                      : find_plugin(list_plugins(plugin_search_path()), plugin_kind::runtime, name, log);
    if (!plugin) throw failed(std::move(plugin.error()));
    auto made = create_runtime(*plugin, settings("the runtime"), log);
    if (!made) throw failed(std::move(made.error()));
    return std::make_unique<held_runtime>(std::move(*made));
}

using store_maker = maker<store, held_store, &create_store>;

// The second process of a case.
int run_rival(const loaded_plugin& plugin, const arguments& given, const std::string& space) {
    null_logger log;
    const auto on = make_runtime(given, log);
    store_maker stores(plugin, read_options(given), *on);
    auto opened = stores.in(space);
    if (auto ready = sync_wait(*on, opened->prepare()); !ready) throw failed(std::move(ready.error()));
    conformance::serve_rival(*opened, *on);
    opened.reset();
    on->stop();
    return 0;
}

// What is known of a store before its cases are run.
struct first_look {
    store_capabilities can;
    std::string closing;
    store_time now;
};

// One that cannot start, or reach its server, says so once.
first_look look_at(store_maker& stores, runtime& on) {
    auto shown = stores.fresh();
    if (auto ready = sync_wait(on, shown->prepare()); !ready) throw failed(std::move(ready.error()));
    auto now = sync_wait(on, shown->now());
    if (!now) throw failed(std::move(now.error()));
    first_look seen{shown->capabilities(), closing_of(*shown), *now};
    if (auto gone = sync_wait(on, shown->destroy()); !gone) throw failed(std::move(gone.error()));
    return seen;
}

// Every case, `rounds` times those that race, on this process's clock.
template <class Report>
conformance::summary run_store_cases(store_maker& stores, runtime& on, const store_capabilities& can,
                                     const arguments& given, int rounds, Report& to) {
    conformance::store_bed bed{[&] { return stores.fresh(); }, {}, &on, {}};
    if (can.shared || can.writes_survive != survives::nothing) bed.again = [&] { return stores.again(); };
    if (can.shared)
        bed.elsewhere = [&] { return std::make_unique<child_rival>(verify_again(given, {"--rival", stores.space()})); };
    const conformance::store_options how{
        .filter = given.value("--filter").value_or(""), .rounds = rounds, .seed = read_seed(given)};
    return conformance::run_store_suite(bed, how, [&](const case_result& r) { to.add(r); });
}

template <class Report>
int run_store_suite(const loaded_plugin& plugin, const arguments& given, Report to) {
    const auto clock = read_clock(given);
    const bool wrong = clock && *clock != duration::zero();
    if (wrong) shift_clock(*clock);
    null_logger log;
    const auto on = make_runtime(given, log);
    store_maker stores(plugin, read_options(given), *on);
    const first_look seen = look_at(stores, *on);
    if (wrong && goes_by_this_clock(seen.now, *clock))
        throw failed({errc::unsupported, "the store goes by this machine's clock", std::nullopt});
    auto total = run_store_cases(stores, *on, seen.can, given, wrong ? 2 : 20, to);
    if (!clock) {
        for (const char* wrong_by : {"+1h", "-1h"}) {
            const auto more = verify_with_clock(given, wrong_by, [&](const case_result& r) { to.add(r); });
            total.passed += more.passed;
            total.failed += more.failed;
            total.skipped += more.skipped;
        }
    }
    const int code = end(to, plugin, given, total, seen.closing);
    on->stop();
    return code;
}

// The cases where the clock is wrong, for the process that started this one. What cannot be run is skipped, not failed.
int run_for_another(const loaded_plugin& plugin, const arguments& given) {
    struct report : line_report {
        static void end(const loaded_plugin&, const conformance::summary&, const std::string&) {}
    };
    try {
        return run_store_suite(plugin, given, report());
    } catch (const failed& e) {
        if (e.what_failed().code != errc::unsupported && e.what_failed().code != errc::not_found) throw;
        if (e.what_failed().code == errc::unsupported) line_report::skipped(e.what_failed().message);
        return 0;
    }
}

template <class Report>
int run_transport_suite(const loaded_plugin& plugin, const arguments& given, Report to) {
    null_logger log;
    const auto on = make_runtime(given, log);
    maker<event_transport, held_transport, &create_events> transports(plugin, read_options(given), *on);
    // One that cannot start, or reach its server, says so once.
    auto shown = transports.fresh();
    if (auto ready = sync_wait(*on, shown->prepare()); !ready) throw failed(std::move(ready.error()));
    const transport_capabilities can = shown->capabilities();
    if (auto gone = sync_wait(*on, shown->destroy()); !gone) throw failed(std::move(gone.error()));
    shown.reset();
    conformance::transport_bed bed{
        [&](const conformance::transport_settings& more) { return transports.fresh(more); }, {}, on.get()};
    if (can.shared || can.writes_survive != survives::nothing) bed.again = [&] { return transports.again(); };
    const conformance::transport_options how{.filter = given.value("--filter").value_or("")};
    const auto total = conformance::run_transport_suite(bed, how, [&](const case_result& r) { to.add(r); });
    const int code = end(to, plugin, given, total, "events. " + durability_of(can));
    on->stop();
    return code;
}

int list_cases(const std::vector<conformance::case_info>& cases, const arguments& given) {
    const std::string filter = given.value("--filter").value_or("");
    for (const auto& each : cases)
        if (each.title().find(filter) != std::string::npos) std::cout << each.title() << "\n";
    return 0;
}

int verify(const arguments& given) {
    auto plugin = load_plugin(given.operands().front());
    if (!plugin) throw failed(std::move(plugin.error()));
    const bool json = given.has("--json");
    if (plugin->kind() == plugin_kind::runtime) {
        if (given.has("--list")) return list_cases(conformance::runtime_cases(), given);
        return json ? run_runtime_suite(*plugin, given, json_report())
                    : run_runtime_suite(*plugin, given, text_report());
    }
    if (plugin->kind() == plugin_kind::store) {
        if (given.has("--list")) return list_cases(conformance::store_cases(), given);
        if (const auto space = given.value("--rival")) return run_rival(*plugin, given, *space);
        if (given.has("--lines")) return run_for_another(*plugin, given);
        return json ? run_store_suite(*plugin, given, json_report()) : run_store_suite(*plugin, given, text_report());
    }
    if (plugin->kind() == plugin_kind::events) {
        if (given.has("--list")) return list_cases(conformance::transport_cases(), given);
        return json ? run_transport_suite(*plugin, given, json_report())
                    : run_transport_suite(*plugin, given, text_report());
    }
    throw failed({errc::unsupported,
                  plugin->file().string() + ": found the " + std::string(holdfast::to_text(plugin->kind())) +
                      " plugin \"" + std::string(plugin->name()) +
                      "\"; only runtime, store and events plugins can be verified",
                  std::nullopt});
}

} // namespace

command verify_command() {
    return {"verify",
            "PLUGIN.so",
            "Proves that a runtime, store or events plugin keeps its contract.",
            {{"--option", "KEY=VALUE", "a setting for the plugin; may be given several times"},
             {"--filter", "TEXT", "only the cases that have TEXT in their title"},
             {"--runtime", "NAME", "what a store or events plugin runs on, a name or a file; asio unless given"},
             {"--seed", "NUMBER", "fixes every random draw; 1 unless given"},
             {"--clock", "TIME", "only where the clock is wrong by so much, +1h or -1h; 0: only where it is right"},
             {"--list", "", "lists the cases and runs none"},
             {"--json", "", "for programs"},
             {"--lines", "", "for this command itself: one line for each case"},
             {"--rival", "NAMESPACE", "for this command itself: the second process on a store"}},
            &verify};
}

} // namespace holdfast::cli
