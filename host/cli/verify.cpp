#include <charconv>
#include <iostream>

#include <holdfast/conformance.hpp>
#include <holdfast/plugin_library.hpp>

#include "allocations.hpp"
#include "commands.hpp"
#include "held_runtime.hpp"
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
        (r.state == case_result::passed ? passed_ : r.state == case_result::failed ? failed_ : skipped_)++;
        if (r.state != case_result::passed)
            std::cout << to_text(r.state) << "  " << r.title() << ": " << r.message << std::endl;
    }
    void end(const loaded_plugin& plugin, const conformance::summary& total) {
        end_group();
        std::cout << plugin.name() << " " << plugin.version();
        if (total.failed > 0) std::cout << " does not conform: " << total.failed << " failed, ";
        else std::cout << " conforms: ";
        std::cout << total.passed << " passed, " << total.skipped << " skipped\n";
    }

private:
    void end_group() {
        if (group_.empty()) return;
        std::string name = group_;
        name.resize(std::max<std::size_t>(name.size(), 14), ' ');
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
    void end(const loaded_plugin& plugin, const conformance::summary& total) {
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
int run_suite(const loaded_plugin& plugin, const arguments& given, Report to) {
    null_logger log;
    const settings with = read_options(given);
    const auto make = [&]() -> std::unique_ptr<runtime> {
        auto made = create_runtime(plugin, with, log);
        if (!made) throw failed(std::move(made.error()));
        return std::make_unique<held_runtime>(std::move(*made));
    };
    make(); // so that one that cannot start says so once
    const conformance::options how{
        .seed = read_seed(given), .filter = given.value("--filter").value_or(""), .allocations = &allocations};
    const auto total = conformance::run_runtime_suite(make, how, [&](const case_result& r) { to.add(r); });
    if (total.passed + total.failed + total.skipped == 0)
        throw failed({errc::not_found, "no case matches --filter " + how.filter, std::nullopt});
    to.end(plugin, total);
    return total.failed == 0 ? 0 : 1;
}

int list_cases(const arguments& given) {
    const std::string filter = given.value("--filter").value_or("");
    for (const auto& each : conformance::runtime_cases())
        if (each.title().find(filter) != std::string::npos) std::cout << each.title() << "\n";
    return 0;
}

int verify(const arguments& given) {
    auto plugin = load_plugin(given.operands().front());
    if (!plugin) throw failed(std::move(plugin.error()));
    if (plugin->kind() != plugin_kind::runtime)
        throw failed({errc::unsupported,
                      plugin->file().string() + ": found the " + std::string(holdfast::to_text(plugin->kind())) +
                          " plugin \"" + std::string(plugin->name()) + "\"; only runtime plugins can be verified",
                      std::nullopt});
    if (given.has("--list")) return list_cases(given);
    return given.has("--json") ? run_suite(*plugin, given, json_report()) : run_suite(*plugin, given, text_report());
}

} // namespace

command verify_command() {
    return {"verify",
            "PLUGIN.so",
            "Proves that a runtime plugin keeps its contract.",
            {{"--option", "KEY=VALUE", "a setting for the plugin; may be given several times"},
             {"--filter", "TEXT", "only the cases that have TEXT in their title"},
             {"--seed", "NUMBER", "fixes every random draw; 1 unless given"},
             {"--list", "", "lists the cases and runs none"},
             {"--json", "", "for programs"}},
            &verify};
}

} // namespace holdfast::cli
