#include "store_lab.hpp"

namespace holdfast::conformance {

store_lab::store_lab(const store_bed& bed, const store_options& how)
    : plugin_lab(*bed.on, how.rounds), bed_(bed), seed_(how.seed), store_(open(bed.fresh)) {}

store_lab::~store_lab() {
    rival_.reset();
    other_.reset();
    if (store_ == nullptr) return;
    try {
        static_cast<void>(await(store_->destroy()));
    } catch (...) {
        // The case has failed already, and says why.
    }
}

void store_lab::close() {
    rival_.reset();
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

rival& store_lab::other_process() {
    if (!store_->capabilities().shared) throw case_skipped("the store is not shared");
    if (!bed_.elsewhere) throw case_skipped("no second process was given");
    if (rival_ != nullptr) return *rival_;
    rival_ = bed_.elsewhere();
    if (const std::string greeting = rival_->hear(); greeting != "ready")
        throw check_failed("the second process: " + greeting);
    return *rival_;
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

} // namespace holdfast::conformance
