// What a run of a conformance kit prints: lines for people, JSON for programs.
#pragma once

#include <iostream>
#include <string>

#include <holdfast/conformance.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/store_conformance.hpp>

#include "arguments.hpp"
#include "json.hpp"

namespace holdfast::cli {

using conformance::case_result;

inline std::string_view to_text(case_result::kind state) {
    return state == case_result::passed ? "passed" : state == case_result::failed ? "failed" : "skipped";
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
            std::cout << to_text(r.state) << "  " << r.title() << ": " << r.message << "\n" << std::flush;
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
            std::cout << name << " " << conformance::not_offered << "\n" << std::flush;
            return;
        }
        std::cout << name << " " << passed_ << " passed";
        if (failed_ > 0) std::cout << ", " << failed_ << " failed";
        if (skipped_ > 0) std::cout << ", " << skipped_ << " skipped";
        std::cout << "\n" << std::flush;
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

} // namespace holdfast::cli
