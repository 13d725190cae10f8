// Whom an exception policy is for, beside a consumer of its own. The innermost scope that has rules counts, alone unless it
// says inherit(): the consumer's, then these, in this order.
#pragma once

namespace holdfast {

enum class error_scope : unsigned char {
    transport, // events that come through the [events] plugin
    bus,       // all events
    host,      // whatever this host runs
};

} // namespace holdfast
