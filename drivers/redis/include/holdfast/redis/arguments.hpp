// What a script is given, as text. Pure.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>
#include <vector>

#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/payload.hpp>

namespace holdfast::redis {

// Scripts count microseconds in doubles: exact below 2^53, some 285 years.
inline constexpr std::int64_t most_microseconds = 9'000'000'000'000'000;

// Rounded up, so that a short time does not become none.
constexpr std::int64_t microseconds(duration d) noexcept {
    return std::min(most_microseconds, d.count() / 1000 + (d.count() % 1000 > 0 ? 1 : 0));
}

// Of what `when` stands for: a delay, or a time since 1970.
constexpr std::int64_t microseconds(const due& when) noexcept {
    if (when.how != due::kind::at) return microseconds(when.delay);
    return std::clamp<std::int64_t>(when.time.time_since_epoch().count(), 0, most_microseconds);
}

class arguments {
public:
    std::vector<std::string> values;

    arguments& add(std::string text) {
        values.push_back(std::move(text));
        return *this;
    }
    arguments& add(std::integral auto number) {
        if constexpr (std::same_as<decltype(number), bool>) return add(std::string(number ? "1" : "0"));
        else return add(std::to_string(number));
    }
    arguments& add(duration d) { return add(microseconds(d)); }
    arguments& add(const identifier& id) { return add(to_text(id)); }
    template <class Of>
    arguments& add(const lease<Of>* held) {
        // A lease that is missing is of nothing.
        if (held == nullptr) return add(std::string()).add(0);
        return add(held->subject()).add(held->token());
    }
    arguments& add(payload what) {
        add(std::move(what.type)).add(what.version).add(std::move(what.content_type));
        return add(std::move(what.body));
    }
};

} // namespace holdfast::redis
