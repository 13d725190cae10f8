#include "store_lab.hpp"

namespace holdfast::conformance {

store_lab::store_lab(const store_bed& bed, const store_options& how)
    : bed_(bed), how_(how), store_(open(bed.fresh)), ids_(1),
      id_time_(std::chrono::system_clock::time_point(std::chrono::hours{24 * 365 * 50})) {}

store_lab::~store_lab() {
    other_.reset();
    if (store_ == nullptr) return;
    try {
        static_cast<void>(await(store_->destroy()));
    } catch (...) {
        // The case has failed already, and says why.
    }
}

void store_lab::close() {
    other_.reset();
    ok(store_->destroy(), "destroy()");
    store_.reset();
}

std::unique_ptr<holdfast::store> store_lab::open(const std::function<std::unique_ptr<holdfast::store>()>& make) {
    auto made = make();
    if (made == nullptr) throw check_failed("the factory gave no store");
    ok(made->prepare(), "prepare()");
    return made;
}

holdfast::store& store_lab::other() {
    if (!store_->capabilities().shared) throw case_skipped("the store is not shared");
    if (!bed_.again) throw case_skipped("no second instance was given");
    if (other_ == nullptr) other_ = open(bed_.again);
    return *other_;
}

void store_lab::reopen() {
    if (store_->capabilities().writes_survive == survives::nothing)
        throw case_skipped("the store says that nothing survives its process");
    if (!bed_.again) throw case_skipped("no second instance was given");
    store_.reset();
    store_ = open(bed_.again);
}

void store_lab::needs_units() {
    if (!store_->capabilities().units_of_work) throw case_skipped(not_offered);
}

std::unique_ptr<unit_of_work> store_lab::begin() {
    needs_units();
    auto unit = ok(store_->begin(), "begin()");
    check(unit != nullptr, "begin() gives a unit of work");
    return unit;
}

void store_lab::pass(duration d) {
    const store_time until = now() + std::chrono::ceil<std::chrono::microseconds>(d);
    for (store_time present = now(); present < until; present = now()) block_for(on(), until - present);
}

identifier store_lab::next_id() {
    id_time_ += 1ms;
    return ids_.next(id_time_);
}

} // namespace holdfast::conformance
