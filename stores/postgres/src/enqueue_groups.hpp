// Small enqueues that come while others are on their way go together with the next one: one statement and one flush for
// many callers. Who finds nobody on the way waits for nobody.
#pragma once

#include <coroutine>
#include <mutex>
#include <vector>

#include <holdfast/job_store.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast::postgres {

// Any thread.
class enqueue_groups {
public:
    explicit enqueue_groups(runtime& on) noexcept : on_(on) {}

    // A call of enqueue(); lives in its coroutine, and so do the jobs. Once joined it leads a group, or has its answer, or
    // is to go alone.
    class member : work {
    public:
        member(enqueue_groups& of, const std::vector<new_job>& jobs) noexcept : of_(of), jobs_(jobs) { run = &resume; }
        member(const member&) = delete;
        member& operator=(const member&) = delete;

        auto join() noexcept {
            struct awaiter {
                member& self;
                bool await_ready() const noexcept { return false; }
                bool await_suspend(std::coroutine_handle<> h) const { return self.of_.enter(self, h); }
                void await_resume() const noexcept {}
            };
            return awaiter{*this};
        }
        bool leads() const noexcept { return role_ == role::leads; }
        // The group failed, perhaps by another one's fault.
        bool alone() const noexcept { return role_ == role::alone; }
        result<std::vector<enqueued>> take_answer() { return std::move(answer_); }

    private:
        friend class enqueue_groups;
        enum class role : unsigned char { waits, leads, answered, alone };
        static void resume(work& w, wake) noexcept { static_cast<member&>(w).waiting_.resume(); }

        enqueue_groups& of_;
        const std::vector<new_job>& jobs_;
        role role_ = role::waits;
        std::coroutine_handle<> waiting_;
        result<std::vector<enqueued>> answer_;
    };
    using group = std::vector<member*>; // the first leads

    // Jobs that cannot get into each other's way: few, small, without parents and unique keys.
    static bool may_join(const std::vector<new_job>& jobs) noexcept;
    static std::vector<new_job> jobs_of(const group& all);

    group gather(member& leader);
    // Wakes the others of the group, and who is to lead the next one. The leader's role tells whether it is answered.
    void share_out(const group& all, const result<std::vector<enqueued>>& answers);

private:
    static constexpr std::size_t most_on_the_way = 4; // more: shorter waits; fewer: larger groups
    static constexpr std::size_t most_jobs = 500;

    // False: it leads, and need not wait.
    bool enter(member& m, std::coroutine_handle<> waiting);
    void go_on(member& m) noexcept;

    runtime& on_;
    std::mutex mutex_;
    std::vector<member*> waiting_;
    std::size_t on_the_way_ = 0;
};

} // namespace holdfast::postgres
