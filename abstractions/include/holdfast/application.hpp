// An application as a plugin, for `holdfast run`: it declares what it has and gets what it needs. Programs with a
// main() of their own use holdfast::host instead and need none of this.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <holdfast/error_scope.hpp>
#include <holdfast/event_consumer.hpp>
#include <holdfast/events.hpp>
#include <holdfast/exception_policy.hpp>
#include <holdfast/facet.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/promises.hpp>
#include <holdfast/schedule.hpp>
#include <holdfast/store.hpp>
#include <holdfast/task.hpp>
#include <holdfast/with_rules.hpp>

namespace holdfast {

// Where declarations go. Throws failed(errc::duplicate) for a name that is taken.
class declarations {
public:
    virtual void add(const policy& p) = 0;

    template <class... More>
        requires(sizeof...(More) > 0)
    void add(const policy& first, const More&... more) {
        add(first);
        add(more...);
    }

    // A type of job that this application can run; see host::add. errc::duplicate for a name that is taken.
    virtual void add(std::unique_ptr<job_type> kind) = 0;
    template <class Job, class Handler, class... More>
        requires has_job_options<Job>
    void add(Handler handler, More... probe_or_rules) {
        add(job_type_of<Job>(std::move(handler), std::move(probe_or_rules)...));
    }

    // A job that comes again; see host::add.
    virtual void add(recurring_job which) = 0;

    // Consumers of events; see host::add_consumer and host::add_domain_consumer.
    virtual void add(std::unique_ptr<event_consumer> one) = 0;
    virtual void add(std::unique_ptr<domain_consumer> one) = 0;
    template <has_event_options Event, class Handler>
    void add_consumer(std::string name, Handler handler, consumer_options options = {}) {
        add(event_consumer_of<Event>(std::move(name), std::move(handler), std::move(options)));
    }
    template <has_event_options Event, class Handler>
    void add_consumer(std::string name, Handler handler, consumer_options options, exception_policy rules) {
        add_consumer<Event>(name, std::move(handler), std::move(options));
        use(std::move(name), std::move(rules));
    }
    template <has_event_options Event, class Handler>
    void add_consumer(std::string name, Handler handler, exception_policy rules) {
        add_consumer<Event>(std::move(name), std::move(handler), consumer_options{}, std::move(rules));
    }
    template <has_event_options Event, class Handler>
    void add_domain_consumer(std::string name, Handler handler) {
        add(domain_consumer_of<Event>(std::move(name), std::move(handler)));
    }

    // What becomes of errors that nobody else has rules for; see host::use. errc::duplicate when the program said so.
    virtual void use(exception_policy rules) = 0;
    // The same for all events, or those that come through [events]; for the consumers of one name.
    virtual void use(error_scope of, exception_policy rules) = 0;
    virtual void use(std::string consumer, exception_policy rules) = 0;

    // The host does not start on stores that cannot keep this: all of them, or the one of a facet, which must be there.
    virtual void require(const promises& asked) = 0;
    virtual void require(facet of, const promises& asked = {}) = 0;

protected:
    ~declarations() = default;
};

// What a running host offers. Any thread.
class services {
public:
    virtual holdfast::policies& policies() noexcept = 0;
    virtual holdfast::runtime& runtime() noexcept = 0;
    virtual logger& log() noexcept = 0;

    // The store of [store], and the one that keeps a facet; a unit of work is for the facets of one store. Without one:
    // failed(errc::configuration), with the section to write.
    virtual holdfast::store& store() = 0;
    virtual holdfast::store& store_of(facet f) = 0;
    idempotency_store& idempotency() { return *store_of(facet::idempotency).idempotency(); }
    lock_store& locks() { return *store_of(facet::locks).locks(); }
    outbox_store& outbox() { return *store_of(facet::outbox).outbox(); }
    // To enqueue jobs with.
    virtual holdfast::jobs& jobs() = 0;
    // To raise and publish events with.
    virtual holdfast::events& events() = 0;
    holdfast::job_store& job_store() { return *store_of(facet::jobs).jobs(); }

protected:
    ~services() = default;
};

class application {
public:
    virtual ~application() = default;
    // Before anything runs.
    virtual void declare(declarations& to) = 0;
    // Runs on a runtime thread until it ends by itself or `stop` fires; the value is the exit code.
    virtual task<int> run(services& with, std::stop_token stop) = 0;
};

} // namespace holdfast
