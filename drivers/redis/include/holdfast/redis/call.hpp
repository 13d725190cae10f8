// One call of a script, decoded. A function object here captures nothing: it outlives the call that made it.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <holdfast/redis/scripted_server.hpp>

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

// Server: what derives from scripted_server and has run(Script, …).
template <class T, class Server, class Script, class Decode>
task<result<T>> call(Server& of, Script which, arguments with, access a, Decode decode) {
    auto running = of.run(which, std::move(with), a);
    co_return decoded<T>(co_await std::move(running), decode);
}

inline int to_count(reply& from) {
    return static_cast<int>(from.number);
}
inline bool to_flag(reply& from) {
    return from.number != 0;
}

} // namespace holdfast::redis
