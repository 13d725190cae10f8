#include "unit.hpp"

namespace holdfast::postgres {

unit::unit(core& of, pool& connections, slot with)
    : owner_(&of), pool_(connections), with_(std::move(with)),
      own_(std::make_unique<pqxx::work>(with_.get()->session())) {}

unit::unit(core& of, pool& connections, pqxx::transaction_base& theirs)
    : owner_(&of), pool_(connections), theirs_(&theirs) {}

// Closing the session is how the server learns of the rollback; nothing waits for it here.
unit::~unit() {
    if (own_ == nullptr) return;
    with_.get()->cut();
    own_.reset();
    with_.drop();
}

std::optional<pool::watch> unit::watch() {
    if (with_.get() == nullptr) return std::nullopt;
    return std::optional<pool::watch>(std::in_place, pool_, *with_.get());
}

result<void> unit::end(bool commit) {
    ended_ = true;
    std::optional<error> problem = commit ? broken_ : std::nullopt;
    if (!problem) {
        try {
            const auto watched = watch();
            if (commit) own_->commit();
            else own_->abort();
        } catch (...) {
            const compat::fault trouble = compat::current_fault();
            // A lost connection that is not in doubt was lost before the commit was asked for.
            if (commit) problem = to_error(trouble, pool_.how(), trouble.what == compat::fault::kind::in_doubt);
        }
    }
    own_.reset();
    if (problem) with_.drop();
    with_ = {};
    if (problem) return std::unexpected(std::move(*problem));
    return {};
}

task<result<void>> unit::commit() {
    if (ended_) co_return fail(errc::invalid_argument, "this unit of work has ended");
    if (theirs_ != nullptr)
        co_return fail(errc::invalid_argument, "the application commits the transaction that this unit of work joined");
    auto here = [this](slot) { return end(true); };
    co_return co_await pool_.run<void>(std::move(here), false);
}

task<result<void>> unit::rollback() {
    if (ended_) co_return fail(errc::invalid_argument, "this unit of work has ended");
    if (theirs_ != nullptr)
        co_return fail(errc::invalid_argument,
                       "the application rolls the transaction back that this unit of work joined");
    auto here = [this](slot) { return end(false); };
    co_return co_await pool_.run<void>(std::move(here), false);
}

} // namespace holdfast::postgres
