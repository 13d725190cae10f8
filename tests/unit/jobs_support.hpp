// A memory store on virtual time, and a client of it.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/jobs.hpp>
#include <holdfast/simulated_runtime.hpp>
#include <holdfast/store.hpp>
#include <holdfast/sync_wait.hpp>

#include "memory_store.hpp"

namespace holdfast::test {

struct job_bench {
    explicit job_bench(job_defaults defaults = {}) : client(*kept->jobs(), ids, defaults) {}

    template <class T>
    T wait(task<T> what) {
        return sync_wait(on, std::move(what));
    }
    // The value; an error is a test's failure.
    template <class T>
    T get(task<result<T>> what) {
        auto answer = wait(std::move(what));
        if (!answer) throw std::runtime_error(answer.error().message);
        if constexpr (!std::is_void_v<T>) return std::move(*answer);
    }
    // The message of the error that was expected.
    template <class T>
    std::string refusal(task<result<T>> what) {
        auto answer = wait(std::move(what));
        return answer ? "not refused" : answer.error().message;
    }
    job_view look(const identifier& id) { return std::get<job_view>(get(client.get(id))); }
    store_time now() { return get(kept->now()); }
    // Claims one job, if one is due.
    std::optional<claimed_job> claim(std::vector<std::string> queues = {"default"}) {
        auto claimed = get(kept->jobs()->claim({.queues = std::move(queues), .limit = 1, .worker = "test"}));
        if (claimed.empty()) return std::nullopt;
        return std::move(claimed.front());
    }
    settled settle(const claimed_job& which, settlement::kind how = settlement::kind::succeed) {
        const settlement one[] = {{.held = &which.lease, .how = how}};
        return get(kept->jobs()->settle(one)).front();
    }

    simulated_runtime on;
    std::unique_ptr<store> kept = memory::make_store({}, &on);
    identifier_source ids{1};
    jobs client;
};

} // namespace holdfast::test
