// Identifiers that follow from what they stand for: whoever makes one for the same slot makes the same one, so that the
// store keeps one job. They sort by that slot's time, like others by when they were made.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <holdfast/backoff.hpp>
#include <holdfast/identifier.hpp>
#include <holdfast/lease.hpp>

namespace holdfast {

// Never changes: jobs of older versions are in stores.
inline identifier derived_id(std::initializer_list<std::string_view> parts, store_time at) {
    constexpr std::uint64_t prime = 0x100000001b3;
    std::uint64_t high = 0xcbf29ce484222325;
    std::uint64_t low = 0x84222325cbf29ce4;
    const auto mix = [&](unsigned char byte) {
        high = (high ^ byte) * prime;
        low = (low ^ static_cast<unsigned char>(byte + 0x5b)) * prime;
        low ^= low >> 29;
    };
    for (const std::string_view part : parts) {
        for (const char c : part) mix(static_cast<unsigned char>(c));
        mix(0xff); // no part runs into the next
    }
    const auto micros = static_cast<std::uint64_t>(at.time_since_epoch().count());
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<unsigned char>(micros >> (8 * byte)));
    high = random_series(high).next();
    low = random_series(low).next();

    const std::uint64_t ms = micros / 1000;
    identifier id;
    for (std::size_t i = 0; i < 6; ++i) id.bytes[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
    for (std::size_t i = 0; i < 2; ++i) id.bytes[6 + i] = static_cast<std::uint8_t>(high >> (8 * i));
    for (std::size_t i = 0; i < 8; ++i) id.bytes[8 + i] = static_cast<std::uint8_t>(low >> (8 * i));
    return id;
}

} // namespace holdfast
