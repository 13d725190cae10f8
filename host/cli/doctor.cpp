#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <holdfast/host.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/version.hpp>

#include "commands.hpp"
#include "opened_host.hpp"
#include "round_trip.hpp"

namespace holdfast::cli {

namespace {

class report {
public:
    void good(std::string what, const std::string& text) { line("ok     ", std::move(what), text); }
    void note(std::string what, const std::string& text) { line("-      ", std::move(what), text); }
    void bad(std::string what, const std::string& text) {
        line("PROBLEM", std::move(what), text);
        ++problems_;
    }
    int end() const {
        if (problems_ == 0) std::cout << "\nall is well\n";
        else std::cout << "\n" << problems_ << (problems_ == 1 ? " problem" : " problems") << "\n";
        return problems_ == 0 ? 0 : 1;
    }

private:
    static void line(const char* state, std::string what, const std::string& text) {
        what.resize(std::max<std::size_t>(what.size(), 9), ' ');
        std::cout << state << "  " << what << " " << text << "\n" << std::flush;
    }
    int problems_ = 0;
};

void check_plugins(report& to, const std::vector<std::filesystem::path>& folders) {
    for (const plugin_folder& folder : list_plugins(folders)) {
        if (!folder.problem) to.good("folder", folder.folder.string());
        else if (folder.problem->code == errc::not_found) to.note("folder", folder.problem->message);
        else to.bad("folder", folder.problem->message);
        for (const plugin_file& each : folder.files) {
            if (each.loaded)
                to.good("plugin", std::string(to_text(each.loaded->kind())) + " " + std::string(each.loaded->name()) +
                                      " " + std::string(each.loaded->version()) + ", " + each.file.string());
            else to.bad("plugin", each.loaded.error().message);
        }
    }
}

void check_round_trip(report& to, const std::string& what, const std::optional<duration>& took) {
    if (took) to.good("runtime", what + " came after " + to_short_text(*took));
    else to.bad("runtime", what + " did not come within " + to_short_text(round_trip_limit));
}

void check_policies(report& to, host& started) {
    if (!started.has_application()) {
        to.note("policies", "declared by the program, so their names were not checked");
        return;
    }
    const auto policies = started.policies_in_force();
    to.good("policies", std::to_string(policies.size()) + " in force");
    for (const policy_in_force& each : policies)
        for (const std::string& warning : each.warnings) to.note("policies", warning);
}

// Nobody compares the two clocks; but who writes "at 9 o'clock" means the store's.
template <class Plugin>
void check_clock(report& to, runtime& on, Plugin& of, const std::string& what, const char* kind) {
    using std::chrono::system_clock;
    constexpr duration tolerated = std::chrono::seconds{1};
    const auto asked = system_clock::now();
    const auto told = sync_wait(on, of.now());
    const auto answered = system_clock::now();
    if (!told) return to.bad(kind, what + " does not tell the time: " + told.error().message);
    const duration ahead = *told - answered;
    const duration behind = asked - *told;
    if (ahead <= tolerated && behind <= tolerated)
        return to.good(kind, what + " answered after " + to_short_text(answered - asked) +
                                 ", and its clock agrees with this machine's");
    to.note(kind, what + ": its clock is " + to_short_text(std::max(ahead, behind)) +
                      (ahead > behind ? " ahead of" : " behind") + " this machine's, and decides what is due");
}

void check_stores(report& to, host& started) {
    const auto stores = started.stores_in_use();
    if (stores.empty()) to.note("store", "none is configured");
    for (const store_in_use& each : stores) {
        const std::string what = each.section + " " + std::string(each.what->name());
        std::string keeps;
        for (const facet f : each.facets) keeps += (keeps.empty() ? "" : ", ") + std::string(to_text(f));
        to.good("store", what + " is ready and keeps " + (keeps.empty() ? "nothing" : keeps));
        to.note("store", what + " " + describe(each.what->capabilities()));
        check_clock(to, started.runtime(), *each.what, what, "store");
    }
}

void check_events(report& to, host& started) {
    if (!started.has_events()) return to.note("events", "none are configured");
    event_transport& carrier = started.event_transport();
    const std::string what = "[events] " + std::string(carrier.name());
    to.good("events", what + " is ready");
    to.note("events", what + " " + describe(carrier.capabilities()));
    check_clock(to, started.runtime(), carrier, what, "events");
}

void check_start(report& to, host& from) {
    from.log_to(std::make_shared<null_logger>()).without_work();
    if (!from.has_application()) from.allow_unknown_policies();
    try {
        from.start();
    } catch (const failed& e) {
        to.bad("start", e.what());
        return;
    }
    runtime& on = from.runtime();
    to.good("runtime", std::string(on.name()) + " has started");
    check_round_trip(to, "posted work", post_round_trip(on));
    check_round_trip(to, "blocking work", blocking_round_trip(on));
    check_round_trip(to, "a timer of 5ms", timer_round_trip(on, std::chrono::milliseconds{5}));
    check_policies(to, from);
    check_stores(to, from);
    check_events(to, from);
    from.stop();
    to.good("runtime", "has stopped");
}

int check(const arguments& given) {
    report to;
    to.good("holdfast", std::string(version_text) + ", ABI " + std::to_string(plugin_abi) + ", " HOLDFAST_TOOLCHAIN);
    std::optional<host> configured;
    auto file = given.value("--config");
    if (!file && std::filesystem::exists(default_config)) file = default_config;
    if (file) {
        try {
            configured.emplace(host::from_file(*file));
            to.good("config", *file);
        } catch (const failed& e) {
            to.bad("config", e.what());
        }
    } else {
        configured.emplace(host::from_text("", "no configuration"));
        to.note("config",
                "none given, and no " + std::string(default_config) + " in this folder: the defaults are checked");
    }
    check_plugins(to, configured ? configured->plugin_folders() : plugin_search_path());
    if (configured) check_start(to, *configured);
    return to.end();
}

} // namespace

command doctor_command() {
    return {"doctor",
            "",
            "Checks that this machine can run what the configuration asks for.",
            {{"--config", "FILE", "the configuration (default: holdfast.toml where there is one, else none)"}},
            &check};
}

} // namespace holdfast::cli
