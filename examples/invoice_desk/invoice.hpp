// The job: one invoice to one customer.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

#include <holdfast/job.hpp>
#include <holdfast/json.hpp>
#include <holdfast/policy.hpp>

// The server will not take it now.
class mail_server_busy : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};
// It never will.
class bad_address : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// [declare]
// Within one attempt: try once more at once, and do not wait for ever.
inline constexpr auto sending = holdfast::policy({
    .name = "mail-server",
    .retry = {.max_attempts = 1, .delay = std::chrono::milliseconds{20}},
    .timeout = std::chrono::seconds{5},
});

struct send_invoice {
    static constexpr holdfast::job_options options{
        .name = "invoice.send",
        .queue = "mail",
        .attempts = 8,
        .retry = {.delay = std::chrono::milliseconds{100}, .max_delay = std::chrono::seconds{2}},
        .rules = {holdfast::stop_on<bad_address>()},
        .policy = "mail-server",
    };
    int number = 0;
    std::string to;
};
BOOST_DESCRIBE_STRUCT(send_invoice, (), (number, to))
// [/declare]
