// All jobs that match a filter, requeued, cancelled or discarded: page by page, so that there may be millions.
//
//   auto count = co_await requeue_matching(store, {.state = job_state::dead_letter, .queue = "mail"});
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

namespace detail {

inline task<result<int>> requeue_these(job_store& in, std::vector<identifier> which) {
    return in.requeue(std::move(which));
}
inline task<result<int>> discard_these(job_store& in, std::vector<identifier> which) {
    return in.discard(std::move(which));
}
inline task<result<int>> cancel_these(job_store& in, std::vector<identifier> which) {
    auto answers = co_await in.cancel(std::move(which));
    if (!answers) co_return std::unexpected(std::move(answers.error()));
    co_return static_cast<int>(std::ranges::count_if(*answers, [](cancel_answer each) {
        return each == cancel_answer::cancelled || each == cancel_answer::requested;
    }));
}

using change_of_jobs = task<result<int>> (*)(job_store&, std::vector<identifier>);

inline task<result<std::uint64_t>> change_matching(job_store& in, job_filter filter, change_of_jobs change) {
    constexpr int page_size = 500;
    std::uint64_t total = 0;
    std::string cursor;
    do {
        auto page = co_await in.list(filter, page_size, std::move(cursor));
        result<int> changed = page ? result<int>(0) : std::unexpected(std::move(page.error()));
        if (page && !page->jobs.empty()) {
            std::vector<identifier> ids;
            ids.reserve(page->jobs.size());
            for (const job_view& each : page->jobs) ids.push_back(each.id);
            changed = co_await change(in, std::move(ids));
        }
        if (!changed) {
            if (total > 0) changed.error().message += " (after " + std::to_string(total) + " jobs, which stay changed)";
            co_return std::unexpected(std::move(changed.error()));
        }
        total += static_cast<std::uint64_t>(*changed);
        cursor = std::move(page->next);
    } while (!cursor.empty());
    co_return total;
}

} // namespace detail

// Each gives how many it changed; what it cannot be done to is left alone, as by the call of the store. Not one write but
// many: what begins to match meanwhile may be left out, and after an error some are changed and some are not.
inline task<result<std::uint64_t>> requeue_matching(job_store& in, job_filter filter) {
    return detail::change_matching(in, std::move(filter), &detail::requeue_these);
}
inline task<result<std::uint64_t>> cancel_matching(job_store& in, job_filter filter) {
    return detail::change_matching(in, std::move(filter), &detail::cancel_these);
}
inline task<result<std::uint64_t>> discard_matching(job_store& in, job_filter filter) {
    return detail::change_matching(in, std::move(filter), &detail::discard_these);
}

} // namespace holdfast
