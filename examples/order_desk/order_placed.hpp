#pragma once

#include <string>

#include <holdfast/event.hpp>
#include <holdfast/json.hpp>

// [event]
struct order_placed {
    static constexpr holdfast::event_options options{.name = "order.placed"};
    int number = 0;
    std::string customer;
    int cents = 0;

    std::string event_key() const { return customer; } // events of one customer arrive in order
};
BOOST_DESCRIBE_STRUCT(order_placed, (), (number, customer, cents))
// [/event]
