// How a call reaches the server, and what is done when the connection is lost meanwhile.
#pragma once

#include <type_traits>
#include <utility>

#include <holdfast/error.hpp>
#include <holdfast/postgres/pool.hpp>
#include <holdfast/postgres/statement_table.hpp>
#include <holdfast/task.hpp>

namespace holdfast::postgres {

// What a call may do when the connection was lost under it.
enum class after_loss : unsigned char {
    unknown, // say so: errc::unknown_outcome
    again,   // call it again on another connection, with session::retried() true; it reads back first, or does no harm
};

// The value of a function that may have none.
template <class T, class Function>
result<T> finish(Function function) {
    if constexpr (std::is_void_v<T>) {
        function();
        return {};
    } else {
        return function();
    }
}

// Where the statements of one call run. One thread.
template <class Statements>
class session_of {
public:
    session_of(pqxx::transaction_base& in, connection* own, pool& of, const Statements& all, bool retried) noexcept
        : in_(in), own_(own), pool_(of), statements_(all), retried_(retried) {}

    pqxx::result run(typename Statements::query what, const parameters& with) { return run(statements_[what], with); }
    pqxx::result run(const statement& what, const parameters& with) {
        if (own_ != nullptr) return own_->run(in_, what, with, !pool_.pooled());
        return compat::run(in_, what.sql, with.values());
    }
    bool retried() const noexcept { return retried_; }

private:
    pqxx::transaction_base& in_;
    connection* own_; // null: the application's
    pool& pool_;
    const Statements& statements_;
    bool retried_;
};

// Opens a connection after a loss, waiting a little for a server that restarts, and makes sure that nothing of
// before is still under way there.
result<connection*> reopen(pool& of, slot& with, const backend& lost);

// Statements: a statement_table.
template <class Statements>
class calls {
public:
    using session = session_of<Statements>;

    calls(options how, runtime& on) : connections(std::move(how), on), texts(connections.how().name) {}

    // function(session&) -> T; it may throw failed.
    template <class T, class Function>
    task<result<T>> call(after_loss then, Function function) {
        auto here = [this, then, f = std::move(function)](slot with) mutable {
            return on_slot<T>(then, f, std::move(with));
        };
        co_return co_await connections.run<T>(std::move(here));
    }

    // The same, on this thread if it would only wait; pool::run_here() says for which calls.
    template <class T, class Function>
    task<result<T>> call_here(after_loss then, Function function) {
        auto here = [this, then, f = std::move(function)](slot with) mutable {
            return on_slot<T>(then, f, std::move(with));
        };
        co_return co_await connections.run_here<T>(std::move(here));
    }

    pool connections;
    const Statements texts;

private:
    static constexpr int most_losses = 3;
    static constexpr int most_rollbacks = 10;

    template <class T, class Function>
    result<T> on_slot(after_loss then, Function& function, slot with) {
        int losses = 0;
        int rollbacks = 0;
        backend lost;
        for (;;) {
            const auto opened = losses == 0 ? with.open() : reopen(connections, with, lost);
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
            } else if ((trouble.sqlstate == "26000" || trouble.sqlstate == "42P05") && !connections.pooled()) {
                connections.saw_pooler(); // it lost or doubled a prepared statement
                continue;
            }
            return std::unexpected(to_error(trouble, connections.how(), true));
        }
    }
};

} // namespace holdfast::postgres
