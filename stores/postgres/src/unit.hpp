// A transaction on a connection of ours, or one that the application has open.
#pragma once

#include <memory>
#include <optional>

#include <holdfast/unit_of_work.hpp>

#include <holdfast/postgres/calls.hpp>

namespace holdfast::postgres {

class core;

class unit final : public unit_of_work {
public:
    // Begins a transaction. Throws what libpqxx throws.
    unit(core& of, pool& connections, slot with);
    // Works in the application's.
    unit(core& of, pool& connections, pqxx::transaction_base& theirs);
    ~unit() override;

    task<result<void>> commit() override;
    task<result<void>> rollback() override;

    const core* owner() const noexcept { return owner_; }
    bool ended() const noexcept { return ended_; }

    // function(transaction, connection or null). An error of the server ends the transaction there: every later call,
    // and the commit, then fails with it.
    template <class T, class Function>
    result<T> use(Function function) {
        if (broken_) return std::unexpected(*broken_);
        try {
            const auto watched = watch();
            pqxx::transaction_base& in = theirs_ != nullptr ? *theirs_ : *own_;
            return postgres::finish<T>([&] { return function(in, with_.get()); });
        } catch (const failed& e) {
            return std::unexpected(e.what_failed());
        } catch (...) {
            broken_ = to_error(compat::current_fault(), pool_.how(), false);
            return std::unexpected(*broken_);
        }
    }

private:
    std::optional<pool::watch> watch();
    result<void> end(bool commit);

    const core* owner_;
    pool& pool_;
    slot with_;
    std::unique_ptr<pqxx::work> own_;
    pqxx::transaction_base* theirs_ = nullptr;
    std::optional<error> broken_;
    bool ended_ = false;
};

} // namespace holdfast::postgres
