// What the facets share: how a call reaches the server, alone or inside a unit of work, and what is done when the
// connection is lost meanwhile.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <holdfast/store.hpp>

#include "bell.hpp"
#include "pool.hpp"
#include "statements.hpp"
#include "unit.hpp"

namespace holdfast::postgres {

// What a call may do when the connection was lost under it.
enum class after_loss : unsigned char {
    unknown, // say so: errc::unknown_outcome
    again,   // call it again on another connection, with session::retried() true; it reads back first, or does no harm
};

// Where the statements of one call run. One thread.
class session {
public:
    session(pqxx::transaction_base& in, connection* own, pool& of, const statements& all, bool retried) noexcept
        : in_(in), own_(own), pool_(of), statements_(all), retried_(retried) {}

    pqxx::result run(query what, const parameters& with) { return run(statements_[what], with); }
    pqxx::result run(const statement& what, const parameters& with) {
        if (own_ != nullptr) return own_->run(in_, what, with, pool_.named_statements());
        return compat::run(in_, what.sql, with.values());
    }
    bool retried() const noexcept { return retried_; }

private:
    pqxx::transaction_base& in_;
    connection* own_; // null: the application's
    pool& pool_;
    const statements& statements_;
    bool retried_;
};

class core {
public:
    core(options how, runtime& on) : connections(std::move(how), on), texts(connections.how().name) {}

    const options& how() const noexcept { return connections.how(); }

    // function(session&) -> T; it may throw failed. In `in`, if that is given.
    template <class T, class Function>
    task<result<T>> call(after_loss then, Function function, unit_of_work* in = nullptr) {
        if (in != nullptr) co_return co_await call_in<T>(in, std::move(function));
        auto here = [this, then, f = std::move(function)](slot with) mutable {
            return on_slot<T>(then, f, std::move(with));
        };
        co_return co_await connections.run<T>(std::move(here));
    }

    pool connections;
    const statements texts;
    bell doorbell{connections};

    // Queues that are in the table for sure.
    bool knows_queue(const std::string& name) {
        const std::lock_guard lock(queues_mutex_);
        return queues_.contains(name);
    }
    void learn_queues(const std::vector<std::string>& names) {
        const std::lock_guard lock(queues_mutex_);
        queues_.insert(names.begin(), names.end());
    }
    void forget_queues() {
        const std::lock_guard lock(queues_mutex_);
        queues_.clear();
    }

    task<result<std::unique_ptr<unit_of_work>>> begin();

private:
    static constexpr int most_losses = 3;
    static constexpr int most_rollbacks = 10;

    // Opens a connection after a loss, waiting a little for a server that restarts, and makes sure that nothing of
    // before is still under way there.
    result<connection*> reopen(slot& with, const backend& lost);

    template <class T, class Function>
    result<T> on_slot(after_loss then, Function& function, slot with) {
        int losses = 0;
        int rollbacks = 0;
        backend lost;
        for (;;) {
            const auto opened = losses == 0 ? with.open() : reopen(with, lost);
            if (!opened) return std::unexpected(opened.error());
            compat::fault trouble;
            try {
                const pool::watch watched(connections, **opened);
                pqxx::nontransaction alone((*opened)->session());
                session here(alone, *opened, connections, texts, losses > 0);
                return finish<T>([&] { return function(here); });
            } catch (const failed& e) {
                return std::unexpected(e.what_failed());
            } catch (...) {
                trouble = compat::current_fault();
            }
            if (!(*opened)->session().is_open()) trouble.what = compat::fault::kind::lost;
            if (trouble.what == compat::fault::kind::lost || trouble.what == compat::fault::kind::in_doubt) {
                lost = (*opened)->served_by();
                with.drop();
                if (then == after_loss::again && ++losses <= most_losses) continue;
            } else if (trouble.what == compat::fault::kind::rolled_back) {
                if (++rollbacks <= most_rollbacks) continue;
            } else if ((trouble.sqlstate == "26000" || trouble.sqlstate == "42P05") && connections.named_statements()) {
                connections.give_up_named_statements(); // a proxy gives us another session each time
                continue;
            }
            return std::unexpected(to_error(trouble, how(), true));
        }
    }

    template <class T, class Function>
    task<result<T>> call_in(unit_of_work* in, Function function) {
        unit* const mine = dynamic_cast<unit*>(in);
        if (mine == nullptr || mine->owner() != this)
            co_return fail(errc::invalid_argument, "this unit of work is of another store");
        if (mine->ended()) co_return fail(errc::invalid_argument, "this unit of work has ended");
        auto here = [this, mine, f = std::move(function)](slot) mutable -> result<T> {
            return mine->use<T>([&](pqxx::transaction_base& transaction, connection* own) {
                session inside(transaction, own, connections, texts, false);
                return f(inside);
            });
        };
        co_return co_await connections.run<T>(std::move(here), false);
    }

    std::mutex queues_mutex_;
    std::set<std::string, std::less<>> queues_;
};

} // namespace holdfast::postgres
