#include <charconv>
#include <iostream>

#include <unistd.h>

#include <holdfast/conformance.hpp>
#include <holdfast/event_conformance.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/store_conformance.hpp>
#include <holdfast/sync_wait.hpp>

#include "allocations.hpp"
#include "commands.hpp"
#include "held_runtime.hpp"
#include "held_store.hpp"
#include "held_transport.hpp"
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
    std::unique_ptr<Interface> again() {
        settings with = with_;
        for (const auto& [key, value] : more_) with.set(key, value);
        with.set("namespace", "hf_verify_" + std::to_string(::getpid()) + "_" + std::to_string(number_));
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

template <class Report>
int run_store_suite(const loaded_plugin& plugin, const arguments& given, Report to) {
    null_logger log;
    const auto on = make_runtime(given, log);
    maker<store, held_store, &create_store> stores(plugin, read_options(given), *on);
    // One that cannot start, or reach its server, says so once.
    auto shown = stores.fresh();
    if (auto ready = sync_wait(*on, shown->prepare()); !ready) throw failed(std::move(ready.error()));
    const store_capabilities can = shown->capabilities();
    const std::string closing = closing_of(*shown);
    if (auto gone = sync_wait(*on, shown->destroy()); !gone) throw failed(std::move(gone.error()));
    shown.reset();
    conformance::store_bed bed{[&] { return stores.fresh(); }, {}, on.get()};
    if (can.shared || can.writes_survive != survives::nothing) bed.again = [&] { return stores.again(); };
    const conformance::store_options how{.filter = given.value("--filter").value_or(""), .seed = read_seed(given)};
    const auto total = conformance::run_store_suite(bed, how, [&](const case_result& r) { to.add(r); });
    const int code = end(to, plugin, given, total, closing);
    on->stop();
    return code;
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
             {"--list", "", "lists the cases and runs none"},
             {"--json", "", "for programs"}},
            &verify};
}

} // namespace holdfast::cli
