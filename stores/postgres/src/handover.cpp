#include "handover.hpp"

#include <random>
#include <utility>

#include "rows.hpp"

namespace holdfast::postgres {

namespace {

std::string random_channel() {
    std::random_device device;
    std::string text = "holdfast_to_";
    for (int i = 0; i < 24; ++i) text += "abcdefghijklmnopqrstuvwxyz234567"[device() % 32];
    return text;
}

std::vector<claimed_job> claimed(const pqxx::result& rows) {
    std::vector<claimed_job> all;
    all.reserve(compat::rows(rows));
    std::int64_t due = 0;
    for (std::size_t i = 0; i < compat::rows(rows); ++i) all.push_back(read_claimed(rows, i, due));
    return all;
}

parameters only(std::string_view address) {
    parameters p;
    p.one(column::text, address);
    return p;
}

} // namespace

class handover::attendant final : public job_watch {
public:
    attendant(handover& of, std::string at, std::unique_ptr<job_watch> letters, std::unique_ptr<job_watch> hints)
        : of_(of), address_(std::move(at)), letters_(std::move(letters)), hints_(std::move(hints)) {}
    ~attendant() override {
        hints_.reset();
        letters_.reset();
        of_.leave(address_);
    }

    std::string address() const override { return address_; }

private:
    handover& of_;
    const std::string address_;
    std::unique_ptr<job_watch> letters_;
    std::unique_ptr<job_watch> hints_;
};

handover::handover(core& of) : core_(of), channel_(random_channel()) {
    core_.doorbell.receive(channel_, [this](const auto& numbers, const auto& ask) { read(numbers, ask); });
}

std::unique_ptr<job_watch> handover::attend(std::vector<std::string> queues, std::function<void()> hint,
                                            std::function<void(claimed_job)> handed) {
    std::string number;
    {
        const std::lock_guard lock(mutex_);
        number = std::to_string(++latest_);
    }
    std::string address = channel_ + " " + number;
    auto letters = bells_.add({number}, [this, number, address, handed = std::move(handed)] {
        unread_.erase(number);
        try {
            for (claimed_job& job : claimed((*ask_)(core_.texts[query::collect], only(address))))
                handed(std::move(job));
        } catch (...) {
            trouble_ = std::current_exception();
        }
    });
    auto hints = core_.doorbell.watch(std::move(queues), std::move(hint));
    if (hints == nullptr) return nullptr;
    return std::make_unique<attendant>(*this, std::move(address), std::move(letters), std::move(hints));
}

void handover::read(const std::vector<std::string>& numbers, const bell::asking& ask) {
    ask_ = &ask;
    unread_ = {numbers.begin(), numbers.end()};
    trouble_ = nullptr;
    if (numbers.empty()) bells_.ring_all();
    else bells_.ring(numbers);
    ask_ = nullptr;
    if (trouble_) std::rethrow_exception(std::exchange(trouble_, nullptr));
    for (const std::string& gone : unread_) ask(core_.texts[query::leave], only(channel_ + " " + gone));
}

// In one of these queues, at the claim before.
bool handover::was_idle(const claim_request& request, bool is_now) {
    const std::lock_guard lock(mutex_);
    std::set<std::string>& in = idle_[request.then_hand_to];
    bool was = false;
    for (const std::string& queue : request.queues) was |= is_now ? !in.insert(queue).second : in.erase(queue) > 0;
    return was;
}

void handover::after_claim(session& here, const claim_request& request, std::vector<claimed_job>& found) {
    const int left = request.limit - static_cast<int>(found.size());
    const bool was = was_idle(request, left > 0);
    if (left <= 0 && !was) return;
    parameters p;
    p.many(column::text, request.queues, [](const std::string& q) { return std::string_view(q); });
    try {
        if (left <= 0) {
            p.one(column::text, std::string_view(request.then_hand_to));
            here.run(query::give_back, p);
            return;
        }
        p.one(column::int4, left).one(column::int8, micros(request.lease_for));
        p.one(column::bytes, std::string_view(request.worker));
        p.one(column::text, std::string_view(request.then_hand_to)).one(column::int8, core_.doorbell.listener());
        for (claimed_job& missed : claimed(here.run(query::wait_for_jobs, p))) found.push_back(std::move(missed));
    } catch (...) {
        if (found.empty()) throw; // else what was claimed counts
    }
}

// Nobody waits for that: without a connection the lock of the one that listened is gone too, and others see that.
void handover::leave(const std::string& address) noexcept {
    try {
        {
            const std::lock_guard lock(mutex_);
            if (idle_.erase(address) == 0) return;
        }
        core_.doorbell.run_soon(core_.texts[query::leave], only(address));
    } catch (...) { // no memory: it is frozen, as it were
    }
}

} // namespace holdfast::postgres
