#include <charconv>
#include <iostream>

#include <unistd.h>

#include <holdfast/conformance.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/store_conformance.hpp>
#include <holdfast/sync_wait.hpp>

#include "allocations.hpp"
#include "commands.hpp"
#include "held_runtime.hpp"
#include "held_store.hpp"
#include "json.hpp"

namespace holdfast::cli {

namespace {

using conformance::case_result;

std::string_view to_text(case_result::kind state) {
    return state == case_result::passed ? "passed" : state == case_result::failed ? "failed" : "skipped";
}

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

// One line per group, and one per case that did not pass.
class text_report {
public:
    void add(const case_result& r) {
        if (r.group != group_) end_group();
        group_ = r.group;
        if (r.message == conformance::not_offered) return; // one line for all of them
        (r.state == case_result::passed ? passed_ : r.state == case_result::failed ? failed_ : skipped_)++;
        if (r.state != case_result::passed)
            std::cout << to_text(r.state) << "  " << r.title() << ": " << r.message << std::endl;
    }
    // `closing` follows "NAME VERSION conforms: "; empty for the numbers.
    void end(const loaded_plugin& plugin, const conformance::summary& total, const std::string& closing) {
        end_group();
        std::cout << plugin.name() << " " << plugin.version();
        if (total.failed > 0) std::cout << " does not conform: " << total.failed << " failed, ";
        else std::cout << " conforms: ";
        if (total.failed == 0 && !closing.empty()) std::cout << closing << "\n";
        else std::cout << total.passed << " passed, " << total.skipped << " skipped\n";
    }

private:
    void end_group() {
        if (group_.empty()) return;
        std::string name = group_;
        name.resize(std::max<std::size_t>(name.size(), 14), ' ');
        if (passed_ + failed_ + skipped_ == 0) {
            std::cout << name << " " << conformance::not_offered << std::endl;
            return;
        }
        std::cout << name << " " << passed_ << " passed";
        if (failed_ > 0) std::cout << ", " << failed_ << " failed";
        if (skipped_ > 0) std::cout << ", " << skipped_ << " skipped";
        std::cout << std::endl;
        passed_ = failed_ = skipped_ = 0;
    }

    std::string group_;
    int passed_ = 0;
    int failed_ = 0;
    int skipped_ = 0;
};

class json_report {
public:
    void add(const case_result& r) {
        json_object object;
        object.add_text("group", r.group).add("number", std::to_string(r.number)).add_text("name", r.name);
        object.add_text("state", to_text(r.state));
        if (!r.message.empty()) object.add_text("message", r.message);
        cases_.add(object.add("took_ns", std::to_string(r.took.count())).text());
    }
    void end(const loaded_plugin& plugin, const conformance::summary& total, const std::string&) {
        std::cout << json_object()
                         .add_text("file", plugin.file().string())
                         .add_text("name", plugin.name())
                         .add_text("version", plugin.version())
                         .add("conforms", total.failed == 0 ? "true" : "false")
                         .add("passed", std::to_string(total.passed))
                         .add("failed", std::to_string(total.failed))
                         .add("skipped", std::to_string(total.skipped))
                         .add("cases", cases_.text())
                         .text()
                  << "\n";
    }

private:
    json_array cases_;
};

template <class Report>
int end(Report& to, const loaded_plugin& plugin, const arguments& given, const conformance::summary& total,
        const std::string& closing = {}) {
    if (total.passed + total.failed + total.skipped == 0)
        throw failed(
            {errc::not_found, "no case matches --filter " + given.value("--filter").value_or(""), std::nullopt});
    to.end(plugin, total, closing);
    return total.failed == 0 ? 0 : 1;
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
    const store_capabilities can = shown.capabilities();
    std::string loses = can.loses;
    if (loses.ends_with('.')) loses.pop_back();
    return offered + ". Survives: " + std::string(holdfast::to_text(can.writes_survive)) + ". Loses: " + loses + ".";
}

// Makes stores of one plugin, each fresh one in a namespace of its own.
class store_maker {
public:
    store_maker(const loaded_plugin& plugin, settings with, runtime& on)
        : plugin_(plugin), with_(std::move(with)), on_(on) {}

    std::unique_ptr<store> fresh() {
        ++number_;
        return again();
    }
    std::unique_ptr<store> again() {
        settings with = with_;
        with.set("namespace", "hf_verify_" + std::to_string(::getpid()) + "_" + std::to_string(number_));
        auto made = create_store(plugin_, std::move(with), log_, on_);
        if (!made) throw failed(std::move(made.error()));
        return std::make_unique<held_store>(std::move(*made));
    }

private:
    const loaded_plugin& plugin_;
    settings with_;
    runtime& on_;
    null_logger log_;
    int number_ = 0;
};

std::unique_ptr<runtime> make_runtime_for_stores(const arguments& given, logger& log) {
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
    const auto on = make_runtime_for_stores(given, log);
    store_maker stores(plugin, read_options(given), *on);
    // One that cannot start, or reach its server, says so once.
    auto shown = stores.fresh();
    if (auto ready = sync_wait(*on, shown->prepare()); !ready) throw failed(std::move(ready.error()));
    const store_capabilities can = shown->capabilities();
    const std::string closing = closing_of(*shown);
    if (auto gone = sync_wait(*on, shown->destroy()); !gone) throw failed(std::move(gone.error()));
    shown.reset();
    conformance::store_bed bed{[&] { return stores.fresh(); }, {}, on.get()};
    if (can.shared || can.writes_survive != survives::nothing) bed.again = [&] { return stores.again(); };
    const conformance::store_options how{.filter = given.value("--filter").value_or("")};
    const auto total = conformance::run_store_suite(bed, how, [&](const case_result& r) { to.add(r); });
    const int code = end(to, plugin, given, total, closing);
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
    throw failed({errc::unsupported,
                  plugin->file().string() + ": found the " + std::string(holdfast::to_text(plugin->kind())) +
                      " plugin \"" + std::string(plugin->name()) + "\"; only runtime and store plugins can be verified",
                  std::nullopt});
}

} // namespace

command verify_command() {
    return {"verify",
            "PLUGIN.so",
            "Proves that a runtime or store plugin keeps its contract.",
            {{"--option", "KEY=VALUE", "a setting for the plugin; may be given several times"},
             {"--filter", "TEXT", "only the cases that have TEXT in their title"},
             {"--runtime", "NAME", "what a store runs on, a name or a file; asio unless given"},
             {"--seed", "NUMBER", "fixes every random draw; 1 unless given"},
             {"--list", "", "lists the cases and runs none"},
             {"--json", "", "for programs"}},
            &verify};
}

} // namespace holdfast::cli
