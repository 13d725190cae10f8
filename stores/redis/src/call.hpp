// One call of a script, decoded. A function object here captures nothing: it outlives the call that made it.
#pragma once

#include "core.hpp"
#include "decode.hpp"

namespace holdfast::redis {

// decode(reply&) -> T; it may throw failed.
template <class T, class Decode>
task<result<T>> call(core& of, script which, arguments with, access a, Decode decode) {
    auto answer = co_await of.run(which, std::move(with), a);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    try {
        if constexpr (std::is_void_v<T>) {
            decode(*answer);
            co_return result<void>();
        } else {
            co_return decode(*answer);
        }
    } catch (const failed& e) {
        co_return std::unexpected(e.what_failed());
    } catch (const std::exception& e) {
        co_return fail(errc::internal, "redis: " + std::string(e.what()));
    }
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
