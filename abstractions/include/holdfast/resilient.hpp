// A handler that runs under a policy, each attempt through everything it is made of:
//
//   auto send = resilient(invoice_email, logged(send_invoice));   // metadata and code, nothing bound yet
//   auto call = send.on(policies);                                // unknown policy = error here
//   call(invoice);  call(invoice, stop_token);  co_await call(invoice) when the handler is a coroutine
//
// The handler takes the call's arguments, then optionally an attempt& or a std::stop_token. Arguments are copied once
// per call and passed to each attempt as lvalues.
#pragma once

#include <stop_token>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/policies.hpp>

namespace holdfast {

template <class Handler>
class resilient_call;

namespace detail {

template <class Handler>
inline constexpr bool is_resilient_call = false;
template <class Handler>
inline constexpr bool is_resilient_call<resilient_call<Handler>> = true;

template <class Handler, class... Arguments>
decltype(auto) call_handler(Handler& handler, attempt& a, Arguments&... arguments) {
    if constexpr (is_resilient_call<Handler>) return handler(arguments..., a.stop_token()); // stops with this attempt
    else if constexpr (std::is_invocable_v<Handler&, Arguments&..., attempt&>) return handler(arguments..., a);
    else if constexpr (std::is_invocable_v<Handler&, Arguments&..., std::stop_token>)
        return handler(arguments..., a.stop_token());
    else return handler(arguments...);
}

template <class Handler>
concept needs_policies = requires(const Handler& h, const policies& p) { h.on(p); };

} // namespace detail

// A handler bound to its pipeline. It keeps the handler; calls may run at the same time if the handler allows it.
template <class Handler>
class resilient_call {
public:
    resilient_call(bound_policy policy, Handler handler) : policy_(policy), handler_(std::move(handler)) {}

    template <class... Arguments>
    decltype(auto) operator()(Arguments... arguments) {
        return split(std::make_index_sequence<count_without_token<Arguments...>>{},
                     std::tuple<Arguments...>(std::move(arguments)...));
    }

private:
    template <class... Arguments>
    static constexpr bool last_is_token = [] {
        if constexpr (sizeof...(Arguments) == 0) return false;
        else
            return std::is_same_v<std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>,
                                  std::stop_token>;
    }();
    template <class... Arguments>
    static constexpr std::size_t count_without_token = sizeof...(Arguments) - (last_is_token<Arguments...> ? 1 : 0);

    template <std::size_t... I, class... Arguments>
    decltype(auto) split(std::index_sequence<I...>, std::tuple<Arguments...> all) {
        std::stop_token stop;
        if constexpr (last_is_token<Arguments...>) stop = std::get<sizeof...(Arguments) - 1>(all);
        return policy_.execute(
            [this, all = std::move(all)](attempt& a) mutable -> decltype(auto) {
                (void)all; // may have nothing in it
                return detail::call_handler(handler_, a, std::get<I>(all)...);
            },
            std::move(stop));
    }

    bound_policy policy_;
    Handler handler_;
};

template <class Handler>
class resilient_handler {
public:
    constexpr resilient_handler(const policy& p, Handler handler) : policy_(p), handler_(std::move(handler)) {}

    // Binds this and every resilient handler directly inside it. Throws failed(errc::unknown_policy).
    auto on(const policies& all) const {
        if constexpr (detail::needs_policies<Handler>) {
            auto inner = handler_.on(all);
            return resilient_call<decltype(inner)>(all.bind(policy_), std::move(inner));
        } else {
            return resilient_call<Handler>(all.bind(policy_), handler_);
        }
    }

    // The policies that a call passes through, outermost first: what lint() needs to see attempts multiply.
    std::vector<policy> chain() const {
        std::vector<policy> policies{policy_};
        if constexpr (detail::needs_policies<Handler>)
            for (const policy& inner : handler_.chain()) policies.push_back(inner);
        return policies;
    }

private:
    policy policy_;
    Handler handler_;
};

template <class Handler>
constexpr auto resilient(const policy& p, Handler handler) {
    return resilient_handler<Handler>(p, std::move(handler));
}

} // namespace holdfast
