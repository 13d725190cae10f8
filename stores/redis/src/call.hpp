// One call of a script, decoded, alone or inside a unit of work.
#pragma once

#include <holdfast/redis/call.hpp>

#include "core.hpp"
#include "decode.hpp"
#include "unit.hpp"

namespace holdfast::redis {

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

inline void owner_only(reply& from) {
    if (from.number == 0)
        throw failed({errc::stale_lease, "redis: somebody else has taken it since, or it has ended", {}});
}

} // namespace holdfast::redis
