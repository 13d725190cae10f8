// One call of a script, decoded. A function object here captures nothing: it outlives the call that made it.
#pragma once

#include "core.hpp"
#include "decode.hpp"
#include "unit.hpp"

namespace holdfast::redis {

// decode(reply&) -> T; it may throw failed.
template <class T, class Decode>
result<T> decoded(result<reply> answer, Decode decode) {
    if (!answer) return std::unexpected(std::move(answer.error()));
    try {
        if constexpr (std::is_void_v<T>) {
            decode(*answer);
            return {};
        } else {
            return decode(*answer);
        }
    } catch (const failed& e) {
        return std::unexpected(e.what_failed());
    } catch (const std::exception& e) {
        return fail(errc::internal, "redis: " + std::string(e.what()));
    }
}

template <class T, class Decode>
task<result<T>> call(core& of, script which, arguments with, access a, Decode decode) {
    auto running = of.run(which, std::move(with), a);
    co_return decoded<T>(co_await std::move(running), decode);
}

// A write that may be part of a unit of work, where it has a name.
template <class T, class Decode>
task<result<T>> call_in(core& of, unit_of_work* in, std::string name, script which, arguments with, Decode decode) {
    if (in == nullptr) {
        auto running = of.run(which, std::move(with), access::write);
        co_return decoded<T>(co_await std::move(running), decode);
    }
    const auto unit = redis_unit::from(in, of);
    if (!unit) co_return std::unexpected(unit.error());
    auto adding = (*unit)->add(std::move(name), std::move(with));
    co_return decoded<T>(co_await std::move(adding), decode);
}

inline int to_count(reply& from) {
    return static_cast<int>(from.number);
}
inline bool to_flag(reply& from) {
    return from.number != 0;
}
inline void owner_only(reply& from) {
    if (from.number == 0)
        throw failed({errc::stale_lease, "redis: somebody else has taken it since, or it has ended", {}});
}

} // namespace holdfast::redis
