// The consumers of events that this process has. Filled before anything is raised or received, only read afterwards.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/error_scope.hpp>
#include <holdfast/event_consumer.hpp>
#include <holdfast/events.hpp>
#include <holdfast/exception_policy.hpp>
#include <holdfast/exception_table.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/task.hpp>

namespace holdfast {

class consumer_registry {
public:
    // errc::duplicate: this consumer name has that topic already. errc::invalid_argument: a name or an option makes no
    // sense. Consumers of one name share a subscription: its slots are the most that one of them asks for, and it begins
    // at the start if one of them does.
    result<void> add(std::unique_ptr<event_consumer> one);
    // They run in the order in which they were added.
    result<void> add(std::unique_ptr<domain_consumer> one);

    // What becomes of messages whose handlers fail: all consumers of that name, or everybody. The innermost scope that
    // has rules counts; nobody said anything: exception_policy::standard(). The latest call for a scope counts.
    void on_error(std::string consumer, exception_policy rules);
    void on_error(error_scope scope, exception_policy rules);
    exception_table error_rules(std::string_view consumer) const;

    // The consumers of one name, in the order of adding.
    struct subscriber {
        std::string name;
        std::vector<event_consumer*> consumers;

        event_consumer* find(std::string_view topic) const noexcept; // null: none
        int concurrency() const noexcept;
        bool from_start() const noexcept;
        std::vector<std::string> topics() const;
    };
    const std::vector<subscriber>& subscribers() const noexcept { return subscribers_; }
    std::vector<domain_consumer*> domain_consumers(std::string_view topic) const;
    bool empty() const noexcept { return subscribers_.empty() && domain_.empty(); }

private:
    std::vector<std::unique_ptr<event_consumer>> integration_;
    std::vector<std::unique_ptr<domain_consumer>> domain_;
    std::vector<subscriber> subscribers_;
    std::map<std::string, exception_policy, std::less<>> own_rules_; // by consumer
    std::map<error_scope, exception_policy> rules_;
};

// Runs the domain consumers of a registry: all of them, in declared order, in the publisher's unit. Both must outlive it.
class inline_dispatcher final : public domain_dispatcher {
public:
    inline_dispatcher(const consumer_registry& consumers, runtime& on) noexcept : consumers_(consumers), on_(on) {}

    // Throws consumers_failed, whose message names each that failed and why.
    task<void> dispatch(std::string_view topic, const void* event, const std::type_info& of, unit_of_work& in) override;

private:
    const consumer_registry& consumers_;
    runtime& on_;
};

} // namespace holdfast
