#include "lab.hpp"

namespace holdfast::conformance {

lab::lab(const runtime_factory& make, const options& how, form which) : how_(how), which_(which), made_(make()) {
    if (made_ == nullptr) throw check_failed("the factory gave no runtime");
    simulated_ = dynamic_cast<simulated_runtime*>(made_.get());
    if (simulated_ == nullptr) virtual_ = std::make_unique<virtual_time_runtime>(*made_);
    if (virtual_) here_.emplace(*virtual_);
    rt_ = virtual_ ? static_cast<runtime*>(virtual_.get()) : made_.get();
    start_ = rt_->now();
    engine_ = std::make_unique<holdfast::engine>(*rt_, how.seed);
}

lab::~lab() {
    rt_->stop();
    engine_.reset();
    here_.reset();
    virtual_.reset();
    made_->stop();
}

bound_policy lab::add(const policy_options& o, std::source_location where) {
    if (auto added = engine_->catalog().add(o); !added)
        fail_check("the policy was refused: " + added.error().message, where);
    return engine_->policies().bind(o.name);
}

recorder& lab::listen() {
    auto made = std::make_shared<recorder>();
    engine_->runner().listen(made);
    return *made; // the runner keeps it
}

alarm::alarm(lab& in, duration after, std::function<void()> then) : on_(in.rt()), then_(std::move(then)) {
    run = &ring;
    check(on_.arm(*this, on_.now() + after), "a runtime that was not stopped takes a timer");
}

alarm::~alarm() {
    if (!on_.cancel(*this)) rung_.park();
}

void alarm::ring(work& w, wake) noexcept {
    auto& self = static_cast<alarm&>(static_cast<timer&>(w));
    self.then_();
    self.rung_.unpark();
}

task<int> fail_after(attempt& a, duration d, std::string message) {
    auto sleeping = a.sleep_for(d);
    co_await std::move(sleeping);
    throw std::runtime_error(message);
}

task<int> give_late(runtime& on, duration d, int value) {
    auto sleeping = sleep_for(on, d);
    co_await sleeping;
    co_return value;
}

task<int> fail_late(runtime& on, duration d, std::string message) {
    auto sleeping = sleep_for(on, d);
    co_await sleeping;
    throw std::runtime_error(message);
}

} // namespace holdfast::conformance
