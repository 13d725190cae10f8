#include "prepare.hpp"

#include <atomic>
#include <exception>
#include <stop_token>

#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>
#include <holdfast/task_scope.hpp>

namespace holdfast::detail {

namespace {

struct preparation {
    const std::function<task<result<void>>()>& how;
    runtime& on;
    logger& log;
    const std::string& title;
    result<void> answer{};
    std::stop_source answered{};
    std::atomic<bool> late = false;
    std::atomic<bool> woken = false;
    parker first{}; // the answer has come, or it is late

    void wake() noexcept {
        if (!woken.exchange(true)) first.unpark();
    }
};

// The plugin's code, so whatever it throws ends here.
task<void> ask(preparation& p) {
    try {
        task<result<void>> preparing = p.how();
        p.answer = co_await std::move(preparing);
    } catch (const failed& e) {
        p.answer = std::unexpected(e.what_failed());
    } catch (const std::exception& e) {
        p.answer = fail(errc::plugin, e.what());
    } catch (...) {
        p.answer = fail(errc::plugin, "it threw something that is not a std::exception");
    }
    p.answered.request_stop();
    p.wake();
}

task<void> watch(preparation& p) {
    const std::stop_token answered = p.answered.get_token();
    if (co_await sleep_for(p.on, prepare_patience, answered) != sleep_end::due) co_return;
    p.log.warning(p.title + " is not ready yet, waiting up to " + to_short_text(prepare_limit));
    if (co_await sleep_for(p.on, prepare_limit - prepare_patience, answered) != sleep_end::due) co_return;
    p.late = true;
    p.wake();
}

} // namespace

result<void> prepare(const std::function<task<result<void>>()>& how, runtime& on, logger& log, const std::string& title,
                     const std::function<void()>& stop_runtime) {
    preparation p{.how = how, .on = on, .log = log, .title = title};
    task_scope both;
    both.spawn(ask(p));
    both.spawn(watch(p));
    on.wait(p.first);
    if (p.late) stop_runtime();
    sync_wait(on, both.join());
    if (p.late) return fail(errc::timed_out, title + " did not get ready within " + to_short_text(prepare_limit));
    if (!p.answer)
        return std::unexpected(error{p.answer.error().code, title + " did not get ready: " + p.answer.error().message,
                                     p.answer.error().retry_after});
    return {};
}

} // namespace holdfast::detail
