// compiles
#include "event_support.hpp"

using namespace holdfast;

struct order_placed : coded {
    static constexpr event_options options{.name = "order.placed", .version = 2};
    std::string order;
    std::string event_key() const { return order; }
};
struct plain { // a domain event needs no codec
    static constexpr event_options options{.name = "plain"};
};

void blocking(order_placed) {}
result<void> returning(order_placed, event_context&) {
    return {};
}
task<void> coroutine(order_placed, unit_of_work&) {
    co_return;
}
task<result<void>> everything(order_placed, unit_of_work&, event_context&) {
    co_return result<void>{};
}
void with_a_token(const order_placed&, unit_of_work&, std::stop_token) {}
void domain_alone(const plain&) {}
task<void> domain_in_unit(plain, unit_of_work&) {
    co_return;
}

const std::unique_ptr<event_consumer> consumers[] = {
    event_consumer_of<order_placed>("a", &blocking),
    event_consumer_of<order_placed>("b", &returning, {.concurrency = 1}),
    event_consumer_of<order_placed>("c", &coroutine),
    event_consumer_of<order_placed>("d", &everything),
    event_consumer_of<order_placed>("e", &with_a_token),
    event_consumer_of<order_placed>("f", [](order_placed, std::stop_token) {}),
};
const std::unique_ptr<domain_consumer> domain[] = {
    domain_consumer_of<plain>("a", &domain_alone),
    domain_consumer_of<plain>("b", &domain_in_unit),
};
