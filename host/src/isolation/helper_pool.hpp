// The helper processes of a host, and the thread that talks with them.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <holdfast/job_isolation.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/runtime.hpp>

#include "frames.hpp"
#include "zygote.hpp"

namespace holdfast::detail {

struct pool_options {
    int processes = 8;                        // at the same time
    bool with_stores = true;                  // helpers open the stores
    std::set<std::string, std::less<>> kinds; // that it takes, by name
};

// Any thread. Kept alive by the attempts in it; whoever made it stops it.
class helper_pool final : public job_isolation, public std::enable_shared_from_this<helper_pool> {
public:
    helper_pool(std::unique_ptr<zygote> from, pool_options how, runtime& on, logger& log);
    helper_pool(const helper_pool&) = delete;
    helper_pool& operator=(const helper_pool&) = delete;
    ~helper_pool(); // stops it, if that was not done

    // Kills what still runs; attempts there end as crashed. Nothing is run afterwards. Once.
    void stop() noexcept;

    bool takes(const job_type& kind) const noexcept override;
    task<std::unique_ptr<isolated_process>> acquire(std::stop_token stop) override;

private:
    enum class phase { starting, idle, taken, running, ending };
    struct helper {
        pid_t id;
        file_handle socket;
        file_handle crash_report;
        phase now = phase::starting;
        std::string outgoing;
        frame_buffer incoming;
        std::string why_not; // it could not start
        time_point idle_since{};
        bool killed = false;
        std::optional<int> wait_status; // it has ended
        // While an attempt runs:
        job_context* context = nullptr;
        std::stop_source ended{std::nostopstate}; // fires when there is an end
        std::optional<isolated_ending> ending;
    };
    using helper_ref = std::shared_ptr<helper>;
    struct waiter {
        std::stop_source served;
        helper_ref got;
        std::string refused;
    };
    class lodger;

    using self = std::shared_ptr<helper_pool>;

    static task<std::unique_ptr<isolated_process>> acquire(self pool, std::stop_token stop);
    static task<isolated_ending> run(self pool, helper_ref in, isolated_job job, job_context& context);
    void ask_to_stop(const helper_ref& which) noexcept;
    void kill(const helper_ref& which) noexcept;
    void give_back(const helper_ref& which) noexcept;
    void wake() noexcept;

    // On the pool's own thread.
    void serve() noexcept;
    bool look_around();
    void ask_for_more();
    void hear_zygote();
    void hear(helper& from);
    void handle(helper& from, frame what);
    void flush(helper& to);
    void bury(helper& which, int wait_status);
    void serve_waiters();
    void retire_idle();
    void end_all(const std::string& why);

    std::unique_ptr<zygote> zygote_;
    const pool_options how_;
    runtime& on_;
    logger& log_;
    file_handle bell_;

    std::mutex mutex_;
    std::list<helper_ref> helpers_;
    std::deque<std::shared_ptr<waiter>> waiting_;
    std::vector<std::stop_source> to_fire_; // once the lock has been given up
    std::vector<std::pair<log_level, std::string>> to_log_;
    std::vector<pid_t> to_kill_;
    int asked_ = 0; // helpers that the zygote has not answered yet
    bool stopping_ = false;
    bool dead_ = false; // the zygote is
    std::thread thread_;
};

} // namespace holdfast::detail
