// A bounded number of connections, opened when they are first needed. Any thread; calls block.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "client.hpp"

namespace holdfast::redis {

class pool {
public:
    explicit pool(const options& how) : where_(how.where), most_(how.connections), timeout_(how.timeout) {
        idle_.reserve(most_);
    }

    // function(client&) -> result<T>. Waits for a connection, at most the timeout. A connection that failed is not
    // used again.
    template <class T, class Function>
    result<T> with(Function&& function) {
        auto taken = take();
        if (!taken) return std::unexpected(taken.error());
        const give_back at_end{*this, *taken};
        return function(**taken);
    }

    // A cluster told us which node has our slot.
    void move_to(std::string host, std::uint16_t port);
    address where() const;

private:
    struct give_back {
        pool& to;
        std::unique_ptr<client>& what;
        ~give_back() { to.put(std::move(what)); }
    };
    result<std::unique_ptr<client>> take();
    void put(std::unique_ptr<client> used) noexcept;

    mutable std::mutex mutex_;
    std::condition_variable freed_;
    address where_;
    std::size_t most_;
    duration timeout_;
    std::size_t out_ = 0;
    std::vector<std::unique_ptr<client>> idle_;
};

} // namespace holdfast::redis
