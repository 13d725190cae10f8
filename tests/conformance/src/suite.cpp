#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "lab.hpp"

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

struct runnable {
    case_info info;
    std::function<void(const runtime_factory&, const options&)> run;
};

void run_in_form(const test_case& what, const runtime_factory& make, const options& how, form which) {
    lab in(make, how, which);
    try {
        what.run(in);
    } catch (const case_skipped&) {
        throw;
    } catch (const std::exception& e) {
        if (!what.both_forms) throw;
        throw check_failed((which == form::blocking ? "blocking: " : "coroutine: ") + std::string(e.what()));
    }
}

std::vector<runnable> all_cases() {
    std::vector<runnable> all;
    for (const contract_case& each : contract_cases())
        all.push_back({{"runtime", each.number, each.name},
                       [run = each.run](const runtime_factory& make, const options&) { run(make); }});
    for (const test_group& group : {attempts_group(), backoff_group(), time_group(), cancellation_group(),
                                    breaker_group(), limits_group(), reload_group(), trace_group()})
        for (const test_case& each : group.cases)
            all.push_back(
                {{group.name, each.number, each.name}, [each](const runtime_factory& make, const options& how) {
                     if (each.both_forms) run_in_form(each, make, how, form::blocking);
                     run_in_form(each, make, how, form::coroutine);
                 }});
    return all;
}

case_result run_case(const runnable& what, const runtime_factory& make, const options& how,
                     const std::function<void(const case_result&)>& report) {
    case_result ended{what.info.group, what.info.number, what.info.name, case_result::passed, {}, {}};
    const watchdog guard(ended, report);
    const auto began = std::chrono::steady_clock::now();
    try {
        what.run(make, how);
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

std::vector<case_info> runtime_cases() {
    std::vector<case_info> all;
    for (auto& each : all_cases()) all.push_back(std::move(each.info));
    return all;
}

summary run_runtime_suite(const std::function<std::unique_ptr<runtime>()>& make, const options& how,
                          const std::function<void(const case_result&)>& report) {
    summary total;
    for (const runnable& each : all_cases()) {
        if (each.info.title().find(how.filter) == std::string::npos) continue;
        const case_result ended = run_case(each, make, how, report);
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
