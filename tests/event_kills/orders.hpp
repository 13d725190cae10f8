// What the processes of the kill test exchange: an order, the event that tells of it, and two jobs that nobody runs, which
// are the books: one is written by whoever places the order, the other by whoever bills it.
#pragma once

#include <string>

#include <holdfast/event.hpp>
#include <holdfast/job.hpp>

namespace holdfast::test {

struct order {
    std::string customer;
    int number = 0; // grows by one for each order of a customer

    friend auto operator<=>(const order&, const order&) = default;
};

struct order_placed : order {
    static constexpr event_options options{.name = "order.placed"};
    std::string event_key() const { return customer; }
};
struct placed : order {
    static constexpr job_options options{.name = "placed", .queue = "placed"};
};
struct billed : order {
    static constexpr job_options options{.name = "billed", .queue = "billed"};
};

inline std::string to_text(const order& o) {
    return o.customer + " " + std::to_string(o.number);
}
inline order parse_order(std::string_view text) {
    const std::size_t at = text.find(' ');
    return {std::string(text.substr(0, at)), std::stoi(std::string(text.substr(at + 1)))};
}

template <class T>
struct order_codec {
    static constexpr std::string_view content_type = "text/plain";
    static std::string encode(const T& it) { return to_text(it); }
    static result<T> decode(std::string_view body) { return T{parse_order(body)}; }
};

} // namespace holdfast::test

template <>
struct holdfast::codec<holdfast::test::order_placed> : holdfast::test::order_codec<holdfast::test::order_placed> {};
template <>
struct holdfast::codec<holdfast::test::placed> : holdfast::test::order_codec<holdfast::test::placed> {};
template <>
struct holdfast::codec<holdfast::test::billed> : holdfast::test::order_codec<holdfast::test::billed> {};
