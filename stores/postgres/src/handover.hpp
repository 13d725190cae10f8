// Jobs that whoever enqueues them has claimed for an idle worker of this process, and put down for it in the table of those.
// The process is told on a channel of its own, and collects them. What it did not hear of, the next claim finds there.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/job_watchers.hpp>

#include "core.hpp"

namespace holdfast::postgres {

// Any thread.
class handover {
public:
    explicit handover(core& of);
    ~handover() { core_.doorbell.refuse_letters(); }
    handover(const handover&) = delete;
    handover& operator=(const handover&) = delete;

    // Null where there are no hints either.
    std::unique_ptr<job_watch> attend(std::vector<std::string> queues, std::function<void()> hint,
                                      std::function<void(claimed_job)> handed);
    // After a claim with an address, on its session: the worker is idle, or is not, or what it has missed is added.
    void after_claim(session& here, const claim_request& request, std::vector<claimed_job>& found);

private:
    class attendant;
    void read(const std::vector<std::string>& numbers, const bell::asking& ask); // none: for everybody
    void leave(const std::string& address) noexcept;
    bool was_idle(const claim_request& request, bool is_now);

    core& core_;
    const std::string channel_;
    job_watchers bells_; // one for each attendant, by its number
    std::mutex mutex_;
    std::uint64_t latest_ = 0;
    std::map<std::string, std::set<std::string>> idle_; // where each address may be noted as idle

    // While letters are read, on the thread that does.
    const bell::asking* ask_ = nullptr;
    std::set<std::string, std::less<>> unread_;
    std::exception_ptr trouble_;
};

} // namespace holdfast::postgres
