// Chooses at start-up what runs the declared policies and what keeps records, by a configuration file.
//
//   auto host = holdfast::host::from_file("desk.toml");
//   host.add(invoice_email, webhook);
//   return host.run();
//
// Members throw holdfast::failed, with a message of one line that says what, where and what was expected.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/error_scope.hpp>
#include <holdfast/event_consumer.hpp>
#include <holdfast/event_relay.hpp>
#include <holdfast/event_transport.hpp>
#include <holdfast/event_worker.hpp>
#include <holdfast/events.hpp>
#include <holdfast/exception_policy.hpp>
#include <holdfast/exception_table.hpp>
#include <holdfast/facet.hpp>
#include <holdfast/job_scheduler.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/job_worker.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/promises.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>
#include <holdfast/with_rules.hpp>

namespace holdfast {

// A policy as the program declared it and as it is in force.
struct policy_in_force {
    std::string name;
    policy_options declared;
    policy_options effective;
    std::vector<std::string> warnings;
};

struct store_in_use {
    std::string section; // "[store.jobs]"
    store* what;
    std::vector<facet> facets; // those that are taken from it
};

// What becomes of the errors of one consumer: the tables of all scopes as one.
struct consumer_rules {
    std::string consumer;
    exception_table table;
};

// "survives power loss, shared by processes, …", for people.
std::string describe(const store_capabilities& c);
std::string describe(const transport_capabilities& c);

// Set it up on one thread; once started, all but add(), use(), require() and their like may be called from any. Its
// destructor stops it.
class host {
public:
    // Reads and checks the configuration; loads nothing yet. Relative paths in it start at the file's folder.
    static host from_file(const std::filesystem::path& file);
    // The same from text; `name` stands for the file in messages and for its folder in paths.
    static host from_text(std::string_view toml, std::string_view name = "configuration");

    host(host&&) noexcept;
    host& operator=(host&&) noexcept;
    ~host();

    // Before start(). errc::duplicate when a name is taken.
    template <std::same_as<policy>... More>
    host& add(const policy& first, const More&... more) {
        add_one(first);
        (add_one(more), ...);
        return *this;
    }
    // Before start(): this process can run jobs of that type, and does, on the queues of [jobs] or, without any there,
    // on those of the types it has; [jobs] work = false keeps it to enqueueing. Blocking handlers run on the blocking
    // pool. A probe goes with restart::probe. Last may come an exception_policy: rules for the errors of that type.
    template <class Job, class Handler, class... More>
        requires has_job_options<Job>
    host& add(Handler handler, More... probe_or_rules) {
        add_kind(job_type_of<Job>(std::move(handler), std::move(probe_or_rules)...));
        return *this;
    }
    // Before start(): fires that job when its schedule says, each slot once among all processes that have it:
    // host.add(recurring(nightly, make_report{"all"})). The process must also be able to run the job, or leave it to one
    // that can.
    host& add(recurring_job which);
    // Before start(): this process consumes that event, after the commit of whoever published it, under the durable
    // subscription `name`; events of several types may share one. Needs [events]; [consumers] work = false keeps the process
    // from it, and [consumers.NAME] goes before `options`. Last may come rules for the errors of all events of that name.
    template <has_event_options Event, class Handler>
    host& add_consumer(std::string name, Handler handler, consumer_options options = {}) {
        add_one(event_consumer_of<Event>(std::move(name), std::move(handler), std::move(options)));
        return *this;
    }
    template <has_event_options Event, class Handler>
    host& add_consumer(std::string name, Handler handler, consumer_options options, exception_policy rules) {
        add_consumer<Event>(name, std::move(handler), std::move(options));
        add_rules(std::move(name), std::move(rules));
        return *this;
    }
    template <has_event_options Event, class Handler>
    host& add_consumer(std::string name, Handler handler, exception_policy rules) {
        return add_consumer<Event>(std::move(name), std::move(handler), consumer_options{}, std::move(rules));
    }
    // Before start(): that event is handled where it is raised, in the unit of work of whoever raises it; in the order of
    // declaration. `name` stands in messages about its failure.
    template <has_event_options Event, class Handler>
    host& add_domain_consumer(std::string name, Handler handler) {
        add_one(domain_consumer_of<Event>(std::move(name), std::move(handler)));
        return *this;
    }
    // Before start(): runs on a runtime of the program's own, which outlives the host and is not stopped by it; stop it
    // before the host is destroyed. The configuration must not have a [runtime] then.
    host& use(holdfast::runtime& mine);
    // Before start(): the default store is one of the program's own, which outlives the host; start() prepares it. The
    // configuration must not have a [store] then, though it may have a [store.FACET].
    host& use(holdfast::store& mine);
    // Before start(), once: what becomes of errors where nothing nearer has rules for them.
    host& use(exception_policy rules);
    // The same for the errors of events alone: all, or those that come through [events]. The innermost scope that has rules
    // counts: the consumer's, the transport's, the bus's, the host's. When none has: exception_policy::standard().
    host& use(error_scope of, exception_policy rules);
    // Before start(): events are carried by something of the program's own, which outlives the host; start() prepares it.
    // The configuration must not have an [events] then.
    host& use(holdfast::event_transport& mine);
    // Before start(): adds to what [promises] asks for. start() refuses stores that cannot keep it: all of them, or the
    // one of a facet, which must be there then.
    host& require(const promises& asked);
    host& require(facet of, const promises& asked = {});
    // Before start(): messages go here and not to standard error; [log] has no effect then.
    host& log_to(std::shared_ptr<logger> sink);
    // Before start(): [policies.NAME] of a policy that was not added is logged and not refused, and [consumers.NAME]
    // passed over. For tools that look at a configuration without the program that it belongs to.
    host& allow_unknown_policies();
    // Before start(): opens no store and no events plugin, and asks for no promise. For tools that need none.
    host& without_stores();
    // Before start(): runs no jobs, relays and consumes no events, whatever the configuration says. For tools that only
    // look.
    host& without_work();

    // Loads the plugins that the configuration names, starts the runtime, puts the policies in force, prepares the stores
    // and what carries events, then works on jobs and events. Once.
    void start();

    // Only after start(), but for log(). After stop() they can still be asked; calls then end as stopped.
    holdfast::policies& policies();
    holdfast::runtime& runtime();
    logger& log();

    // Only after start(); they live as long as the host. The store of [store], and the one that keeps a facet; a unit of
    // work is for the facets of one store. Without one: failed(errc::configuration), with the section to write.
    holdfast::store& store();
    holdfast::store& store_of(facet f);
    idempotency_store& idempotency();
    lock_store& locks();
    outbox_store& outbox();
    holdfast::job_store& job_store();
    // To enqueue with. Only after start().
    holdfast::jobs& jobs();
    // What the worker of this process is at; empty when it has none. Only after start().
    worker_snapshot worker() const;
    // To raise and publish events with. Only after start().
    holdfast::events& events();
    // What carries them: dead letters, subscriptions, replay. Without one: failed(errc::configuration). Only after start().
    holdfast::event_transport& event_transport();
    // What the relay and the consumers of this process are at; empty when it has none. Only after start().
    relay_snapshot relay() const;
    event_worker_snapshot consumers() const;
    // The schedules of this process: when each is due next, what became of the latest run. Only after start().
    task<result<std::vector<schedule_status>>> schedules();

    // Starts if that was not done, and the application plugin if there is one, and returns when that has ended, after
    // SIGTERM, SIGINT or request_stop(), stopped. SIGHUP reloads. Gives the application's exit code, 0 without one, 1
    // when it cannot start (the reason is logged) or a handler would not end; one that keeps its thread for good cannot be
    // waited for, so the process ends here with that code. Jobs and consumers that run get their grace ([jobs] and
    // [consumers] shutdown_grace); a second SIGTERM or SIGINT cuts it short, and where there are none, or at the third,
    // ends the process at once, 128 + signal.
    int run();
    // Makes run() return. Also from the runtime's own threads.
    void request_stop() noexcept;

    // Reads the file again and puts its [policies.*] in force, all of them or, when anything in the file is wrong,
    // none; logs either. Calls under way finish on what they started with. Other sections count at the next start.
    result<void> reload();

    // Asks the application to stop, waits until it has, then stops the runtime: nothing runs afterwards. Handlers that
    // block for good are waited for, unless run() is at it. Not from the runtime's own threads. Calling it again does
    // nothing.
    void stop() noexcept;

    // All policies, in the order of their declaration, those of the application plugin last. Only after start().
    std::vector<policy_in_force> policies_in_force() const;
    // By consumer, in the order of their declaration. Only after start().
    std::vector<consumer_rules> rules_in_force() const;
    // In the order of [store], [store.jobs], [store.idempotency], [store.locks], [store.outbox]. Only after start().
    std::vector<store_in_use> stores_in_use() const;
    // Where plugins are looked for.
    std::vector<std::filesystem::path> plugin_folders() const;
    // Whether the configuration names an application plugin.
    bool has_application() const noexcept;
    // Whether something carries events: [events], or what use() was given.
    bool has_events() const noexcept;

private:
    class impl;
    explicit host(std::unique_ptr<impl> made) noexcept;
    void add_one(const policy& p);
    void add_kind(std::unique_ptr<job_type> kind);
    void add_one(std::unique_ptr<event_consumer> one);
    void add_one(std::unique_ptr<domain_consumer> one);
    void add_rules(std::string consumer, exception_policy rules);

    std::unique_ptr<impl> impl_;
};

} // namespace holdfast
