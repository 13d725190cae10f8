// Awaiting one Asio operation from a task: the awaiter, the completion handler, and cancellation by a stop token.
#pragma once

#include <atomic>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/system/system_error.hpp>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/error.hpp>

namespace holdfast::detail {

// What a completion with these arguments gives: without a leading error, nothing, the one value, or a tuple.
template <class... Values>
struct asio_values {
    using type = std::tuple<Values...>;
    static type take(std::tuple<Values...>&& from) { return std::move(from); }
};
template <>
struct asio_values<> {
    using type = void;
    static void take(std::tuple<>&&) noexcept {}
};
template <class Value>
struct asio_values<Value> {
    using type = Value;
    static type take(std::tuple<Value>&& from) { return std::get<0>(std::move(from)); }
};

template <class... Args>
struct asio_result : asio_values<Args...> {
    static std::exception_ptr error_of(const std::tuple<Args...>&) noexcept { return nullptr; }
    static auto value_of(std::tuple<Args...>&& from) { return asio_values<Args...>::take(std::move(from)); }
};
template <class Error, class... Values>
    requires(std::is_same_v<Error, boost::system::error_code> || std::is_same_v<Error, std::exception_ptr>)
struct asio_result<Error, Values...> : asio_values<Values...> {
    static std::exception_ptr error_of(const std::tuple<Error, Values...>& from) {
        if constexpr (std::is_same_v<Error, std::exception_ptr>) return std::get<0>(from);
        else if (!std::get<0>(from)) return nullptr;
        else return std::make_exception_ptr(boost::system::system_error(std::get<0>(from)));
    }
    static auto value_of(std::tuple<Error, Values...>&& from) {
        return std::apply(
            [](Error&, Values&... values) {
                return asio_values<Values...>::take(std::tuple<Values...>(std::move(values)...));
            },
            from);
    }
};

inline bool is_aborted(const std::exception_ptr& thrown) noexcept {
    const auto* e = exception_as<boost::system::system_error>(thrown);
    return e != nullptr && e->code() == boost::asio::error::operation_aborted;
}

template <class Signature>
struct asio_value;
template <class... Args>
struct asio_value<void(Args...)> {
    using type = typename asio_result<std::decay_t<Args>...>::type;
};

// What it takes to cancel: a strand, for neither Asio's signals nor composed operations may be touched from two threads
// at once, and what runs on it only.
struct asio_canceller {
    using strand = boost::asio::strand<boost::asio::any_io_executor>;
    explicit asio_canceller(const boost::asio::any_io_executor& on) : serial(boost::asio::make_strand(on)) {}
    strand serial;
    boost::asio::cancellation_signal signal;
    bool ended = false;
};

struct asio_cancel {
    std::shared_ptr<asio_canceller> what;
    void operator()() const noexcept {
        try {
            boost::asio::post(what->serial, [c = what] {
                if (!c->ended) c->signal.emit(boost::asio::cancellation_type::terminal);
            });
        } catch (...) {
            return; // no memory to say so: the operation ends by itself
        }
    }
};

template <class Signature, class Initiation, bool Stoppable>
class asio_wait;

// `Initiation` is called once with the completion handler, as Asio would call it. With a stop token that can fire, the
// operation and its cancellation run on a strand of their own over the executor, which is not used otherwise.
template <class... Args, class Initiation, bool Stoppable>
class asio_wait<void(Args...), Initiation, Stoppable> {
    using result = asio_result<std::decay_t<Args>...>;
    using value_type = typename result::type;

public:
    asio_wait(boost::asio::any_io_executor executor, Initiation initiation, std::stop_token stop)
        : executor_(std::move(executor)), initiation_(std::move(initiation)), stop_(std::move(stop)) {}
    asio_wait(const asio_wait&) = delete;
    asio_wait& operator=(const asio_wait&) = delete;

    bool await_ready() const noexcept { return stop_.stop_requested(); }

    // This function, the operation and what starts it on the strand each may be last; whoever is resumes the coroutine.
    bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
        awaiting_ = awaiting;
        try {
            start();
        } catch (...) { // nobody else is left
            thrown_ = std::current_exception();
        }
        return !arrive();
    }

    value_type await_resume() {
        on_stop_.reset();
        if (!arguments_ && !thrown_) throw operation_cancelled(); // stopped before it began
        if (!thrown_) thrown_ = result::error_of(*arguments_);
        if (thrown_ && stop_.stop_requested() && is_aborted(thrown_)) throw operation_cancelled();
        if (thrown_) std::rethrow_exception(std::move(thrown_));
        return result::value_of(std::move(*arguments_));
    }

private:
    // One of those that the coroutine waits for. Arrives when it is destroyed.
    class party {
    public:
        explicit party(asio_wait& of) noexcept : wait_(&of) { of.parties_.fetch_add(1, std::memory_order_relaxed); }
        party(party&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
        party& operator=(party&&) = delete;
        ~party() { arrive(); }
        explicit operator bool() const noexcept { return wait_ != nullptr; }
        asio_wait* operator->() const noexcept { return wait_; }
        void arrive() noexcept {
            asio_wait* at = std::exchange(wait_, nullptr);
            if (at != nullptr && at->arrive()) at->awaiting_.resume();
        }

    private:
        asio_wait* wait_;
    };

    class handler {
    public:
        handler(asio_wait& wait, std::shared_ptr<asio_canceller> by) noexcept
            : wait_(wait), canceller_(std::move(by)) {}
        handler(handler&&) noexcept = default;
        handler& operator=(handler&&) = delete;
        // Destroyed uncalled: the context went away.
        ~handler() {
            if (!wait_) return;
            wait_->thrown_ = std::make_exception_ptr(
                failed({errc::stopped, "the io_context was destroyed before the operation ended", std::nullopt}));
            end();
        }
        template <class... Given>
        void operator()(Given&&... given) noexcept {
            try {
                wait_->arguments_.emplace(std::forward<Given>(given)...);
            } catch (...) {
                wait_->thrown_ = std::current_exception();
            }
            end();
        }

    private:
        void end() noexcept {
            if (canceller_ != nullptr) canceller_->ended = true;
            wait_.arrive();
        }
        party wait_;
        std::shared_ptr<asio_canceller> canceller_;
    };

    void start() {
        if constexpr (Stoppable) {
            if (stop_.stop_possible()) return start_on_strand();
        }
        std::move(initiation_)(handler(*this, nullptr));
    }
    void start_on_strand() {
        auto by = std::make_shared<asio_canceller>(executor_);
        auto start = [by, h = handler(*this, by), me = party(*this)]() mutable {
            const party alive = std::move(me);
            try {
                std::move(alive->initiation_)(boost::asio::bind_executor(
                    by->serial, boost::asio::bind_cancellation_slot(by->signal.slot(), std::move(h))));
            } catch (...) {
                alive->thrown_ = std::current_exception();
            }
        };
        boost::asio::dispatch(by->serial, std::move(start));
        on_stop_.emplace(stop_, asio_cancel{by});
    }
    bool arrive() noexcept { return parties_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

    boost::asio::any_io_executor executor_;
    Initiation initiation_;
    std::stop_token stop_;
    std::coroutine_handle<> awaiting_;
    std::atomic<int> parties_ = 1;
    std::optional<std::tuple<std::decay_t<Args>...>> arguments_;
    std::exception_ptr thrown_;
    std::optional<std::stop_callback<asio_cancel>> on_stop_;
};

} // namespace holdfast::detail
