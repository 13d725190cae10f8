#include "handover.hpp"

#include <utility>

#include "decode.hpp"
#include "record.hpp"

namespace holdfast::redis {

class handover::attendant final : public job_watch {
public:
    attendant(std::string at, std::shared_ptr<box> into, std::unique_ptr<job_watch> bell,
              std::unique_ptr<job_watch> hints)
        : address_(std::move(at)), into_(std::move(into)), bell_(std::move(bell)), hints_(std::move(hints)) {}

    std::string address() const override { return address_; }

private:
    const std::string address_;
    std::shared_ptr<box> into_; // the last to go
    std::unique_ptr<job_watch> bell_;
    std::unique_ptr<job_watch> hints_;
};

handover::handover(core& of) : core_(of), name_(random_marker()) {
    core_.hints().receive(core_.key("to:" + name_), [this](const std::string& packed) { receive(packed); });
}

std::unique_ptr<job_watch> handover::attend(std::vector<std::string> queues, std::function<void()> hint,
                                            std::function<void(claimed_job)> handed) {
    // A cluster tells every node what is published, and the publisher how many heard it on one.
    if (!core_.stands_alone()) return core_.hints().watch(std::move(queues), std::move(hint));
    auto into = std::make_shared<box>();
    std::string number;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(boxes_, [](const auto& each) { return each.second.expired(); });
        boxes_.emplace(++latest_, into);
        number = std::to_string(latest_);
    }
    auto bell = bells_.add({number}, [box = into.get(), handed = std::move(handed)] {
        for (claimed_job& each : box->take()) handed(std::move(each));
    });
    auto hints = core_.hints().watch(std::move(queues), std::move(hint));
    return std::make_unique<attendant>(name_ + " " + number, std::move(into), std::move(bell), std::move(hints));
}

std::shared_ptr<handover::box> handover::find(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = boxes_.find(number);
    return found == boxes_.end() ? nullptr : found->second.lock();
}

void handover::receive(const std::string& packed) noexcept {
    try {
        parcel got = unpack_parcel(packed);
        claimed_job job = decode_claimed(std::move(got.id), got.record, got.what);
        const auto into = find(got.watch);
        if (into == nullptr) return release(job.lease);
        {
            const std::lock_guard lock(into->mutex);
            into->jobs.push_back(std::move(job));
        }
        bells_.ring(std::vector{std::to_string(got.watch)});
        for (const claimed_job& each : into->take()) release(each.lease); // the watch has gone meanwhile
    } catch (...) { // what cannot be read is a job whose lease will run out
    }
}

void handover::release(const job_lease& held) {
    const settlement back{.held = &held, .how = settlement::kind::release};
    arguments with;
    with.add(core_.how.keep_succeeded);
    with.add(back.held).add(static_cast<int>(back.how)).add(pack_details(back));
    core_.hints().then([this, with] { static_cast<void>(core_.run_here(script::settle, with, access::write)); });
}

} // namespace holdfast::redis
