// Jobs that whoever enqueues them has claimed for an idle worker of this process: they come as parcels on a channel of its
// own, which the claim that found nothing has named. A process that is gone does not listen, and gets none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/job_watchers.hpp>

#include "core.hpp"

namespace holdfast::redis {

// Any thread.
class handover {
public:
    explicit handover(core& of);
    // What comes for nobody any more is released until this has ended.
    ~handover() { core_.hints().close(); }
    handover(const handover&) = delete;
    handover& operator=(const handover&) = delete;

    // Without an address where the server cannot tell whether a process listens: nothing is handed over then.
    std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                      std::function<void(claimed_job)> handed);

private:
    class attendant;
    struct box {
        std::mutex mutex;
        std::vector<claimed_job> jobs;
        std::vector<claimed_job> take() {
            const std::lock_guard lock(mutex);
            return std::exchange(jobs, {});
        }
    };

    void receive(const std::string& packed) noexcept;
    std::shared_ptr<box> find(std::uint32_t number);
    void release(const job_lease& held);

    core& core_;
    const std::string name_; // of the channel
    job_watchers bells_;     // one for each box, by its number
    std::mutex mutex_;
    std::uint32_t latest_ = 0;
    std::map<std::uint32_t, std::weak_ptr<box>> boxes_;
};

} // namespace holdfast::redis
