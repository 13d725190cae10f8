#include "suite.hpp"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "check.hpp"

namespace holdfast::conformance {

namespace {

constexpr auto hang_limit = std::chrono::seconds{120};

// Ends the process when a case does not end.
class watchdog {
public:
    watchdog(case_result running, std::function<void(const case_result&)> report)
        : thread_([this, running = std::move(running), report = std::move(report)](std::stop_token stop) mutable {
              std::unique_lock lock(mutex_);
              if (changed_.wait_for(lock, stop, hang_limit, [] { return false; }) || stop.stop_requested()) return;
              running.state = case_result::failed;
              running.took = hang_limit;
              running.message = "did not end within " + to_text(duration(hang_limit));
              report(running);
              std::fprintf(stderr, "holdfast: the conformance case \"%s\" hangs; giving up\n", running.title().c_str());
              std::fflush(nullptr);
              std::abort();
          }) {}

private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::jthread thread_; // last: it uses the others
};

case_result run_case(const runnable& what, const std::function<void(const case_result&)>& report) {
    case_result ended{what.info.group, what.info.number, what.info.name, case_result::passed, {}, {}};
    const watchdog guard(ended, report);
    const auto began = std::chrono::steady_clock::now();
    try {
        what.run();
    } catch (const case_skipped& e) {
        ended.state = case_result::skipped;
        ended.message = e.what();
    } catch (const check_failed& e) {
        ended.state = case_result::failed;
        ended.message = e.what();
    } catch (...) {
        ended.state = case_result::failed;
        const auto thrown = std::current_exception();
        ended.message = "unexpected " + detail::exception_type_name(thrown) + ": " + detail::exception_message(thrown);
    }
    ended.took = std::chrono::steady_clock::now() - began;
    return ended;
}

} // namespace

std::vector<case_info> infos_of(std::vector<runnable> all) {
    std::vector<case_info> infos;
    for (auto& each : all) infos.push_back(std::move(each.info));
    return infos;
}

summary run_all(const std::vector<runnable>& all, const std::string& filter,
                const std::function<void(const case_result&)>& report) {
    summary total;
    for (const runnable& each : all) {
        if (each.info.title().find(filter) == std::string::npos) continue;
        const case_result ended = run_case(each, report);
        switch (ended.state) {
        case case_result::passed: ++total.passed; break;
        case case_result::failed: ++total.failed; break;
        case case_result::skipped: ++total.skipped; break;
        }
        report(ended);
    }
    return total;
}

} // namespace holdfast::conformance
