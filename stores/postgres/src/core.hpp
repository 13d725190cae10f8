// What the facets share: how a call reaches the server, alone or inside a unit of work.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <holdfast/postgres/bell.hpp>
#include <holdfast/postgres/calls.hpp>
#include <holdfast/store.hpp>

#include "statements.hpp"
#include "store_options.hpp"
#include "sweeping.hpp"
#include "unit.hpp"

namespace holdfast::postgres {

using session = session_of<statements>;

class core : public calls<statements> {
public:
    core(store_options how, runtime& on) : calls(static_cast<const options&>(how), on), how_(std::move(how)) {}

    const store_options& how() const noexcept { return how_; }

    // function(session&) -> T; it may throw failed. In `in`, if that is given.
    template <class T, class Function>
    task<result<T>> call(after_loss then, Function function, unit_of_work* in = nullptr) {
        if (in != nullptr) return call_in<T>(in, std::move(function));
        return calls::call<T>(then, std::move(function));
    }

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

    const store_options how_;
    std::mutex queues_mutex_;
    std::set<std::string, std::less<>> queues_;

public:
    sweeper sweeping{connections, texts[query::sweep], how_};
};

} // namespace holdfast::postgres
