#include <algorithm>

#include <holdfast/nearest.hpp>
#include <holdfast/sync_wait.hpp>

#include "host_impl.hpp"
#include "prepare.hpp"
#include "promise_check.hpp"
#include "tuned_consumer.hpp"

namespace holdfast {

namespace {

// What to say when there is none of that name.
std::optional<std::string> unknown_consumer(const consumer_registry& in, const std::string& name) {
    std::vector<std::string> names;
    for (const auto& each : in.subscribers()) names.push_back(each.name);
    if (std::ranges::find(names, name) != names.end()) return std::nullopt;
    return "there is no consumer \"" + name + "\"" + did_you_mean(name, names);
}

} // namespace

void host::impl::add(std::unique_ptr<event_consumer> one) {
    if (phase_ != phase::starting) must_be_setting_up("add_consumer");
    declared_consumers_.push_back(std::move(one));
}

void host::impl::add(std::unique_ptr<domain_consumer> one) {
    if (phase_ != phase::starting) must_be_setting_up("add_domain_consumer");
    detail::value_or_throw(consumers_.add(std::move(one)));
}

void host::impl::use(error_scope of, exception_policy rules) {
    if (of == error_scope::host) return use(std::move(rules));
    if (phase_ != phase::starting) must_be_setting_up("use");
    if (!event_rules_.emplace(of, std::move(rules)).second)
        throw failed({errc::duplicate, "events have exception rules of that scope already", std::nullopt});
}

void host::impl::use(std::string consumer, exception_policy rules) {
    if (phase_ != phase::starting) must_be_setting_up("use");
    if (!consumer_rules_.emplace(consumer, std::move(rules)).second)
        throw failed(
            {errc::duplicate,
             "the consumer \"" + consumer + "\" has exception rules already: one policy is for all of its events",
             std::nullopt});
}

void host::impl::use(holdfast::event_transport& mine) {
    must_be_setting_up("use");
    if (config_.events)
        throw failed({errc::configuration, config_.events->where + ": [events] must go: the program brings its own",
                      std::nullopt});
    transport_ = &mine;
}

holdfast::events& host::impl::events() {
    return *events_;
}

holdfast::event_transport& host::impl::event_transport() {
    if (transport_ != nullptr) return *transport_;
    throw failed({errc::configuration,
                  config_.name + ": nothing carries events; write [events] with plugin = \"memory\", or another",
                  std::nullopt});
}

relay_snapshot host::impl::relay() const {
    return relay_ ? relay_->snapshot() : relay_snapshot{};
}

event_worker_snapshot host::impl::consumers() const {
    return consuming_ ? consuming_->snapshot() : event_worker_snapshot{};
}

// Before any handler runs, for each may publish.
void host::impl::start_events() {
    const auto kept = stores_.of(facet::outbox);
    outbox_store* outbox = kept ? (*kept)->outbox() : nullptr;
    domain_.emplace(consumers_, *runtime_);
    events_.emplace(outbox, *ids_, &*domain_);
    open_transport();
    if (config_.consumers.work) subscribe_consumers();
    if (transport_ == nullptr || outbox == nullptr || !config_.relay.work) return;
    warn_of_weaker_transport((*kept)->capabilities());
    relay_.emplace(relay_parts{.on = *runtime_, .outbox = *outbox, .to = *transport_, .log = *log_}, config_.relay.how);
    events_->tell(&event_relay::nudge_relay, &*relay_);
    detail::value_or_throw(relay_->start());
    log_->debug("relaying events as " + relay_->name());
}

void host::impl::register_consumers() {
    for (auto& each : declared_consumers_) {
        if (const auto* override = config_.consumers.of(each->name()))
            each = std::make_unique<detail::tuned_consumer>(std::move(each), *override);
        detail::value_or_throw(consumers_.add(std::move(each)));
    }
    declared_consumers_.clear();
    if (allow_unknown_policies_) return; // a tool, without the program that has the consumers
    for (const detail::consumer_override& each : config_.consumers.overrides)
        if (const auto unknown = unknown_consumer(consumers_, each.name))
            throw failed(
                {errc::configuration, each.where + ": [consumers." + each.name + "]: " + *unknown, std::nullopt});
}

// A policy without a word is none.
void host::impl::register_rules() {
    const auto add = [this](const auto& of, const exception_policy& rules) {
        if (!rules.empty()) consumers_.on_error(of, rules);
    };
    if (rules_) add(error_scope::host, *rules_);
    for (const auto& [scope, rules] : event_rules_) add(scope, rules);
    for (const auto& [name, rules] : consumer_rules_) {
        if (const auto unknown = unknown_consumer(consumers_, name))
            throw failed({errc::invalid_argument, "exception rules: " + *unknown, std::nullopt});
        add(name, rules);
    }
}

std::vector<consumer_rules> host::impl::rules_in_force() const {
    std::vector<consumer_rules> all;
    for (const auto& each : consumers_.subscribers()) all.push_back({each.name, consumers_.error_rules(each.name)});
    return all;
}

void host::impl::open_transport() {
    if (config_.events) {
        const loaded_plugin plugin = find(*config_.events, plugin_kind::events);
        auto made = create_events(plugin, config_.events->to_settings(config_.folder), *log_, *runtime_);
        if (!made) throw failed(std::move(made.error()));
        own_transport_.emplace(std::move(*made));
        transport_ = &**own_transport_;
        log_->debug("[events] " + std::string(plugin.name()) + " " + std::string(plugin.version()) + " from " +
                    plugin.file().string());
    }
    if (!consumers_.subscribers().empty() && transport_ == nullptr)
        throw failed({errc::configuration,
                      config_.name + ": the consumer \"" + consumers_.subscribers().front().name +
                          "\" needs [events] with plugin = \"memory\", or another",
                      std::nullopt});
    if (transport_ == nullptr) return check_event_promises();
    detail::value_or_throw(detail::prepare([this] { return transport_->prepare(); }, *runtime_, *log_,
                                           transport_title(), [this] { stop_own_runtime(); }));
    check_event_promises();
}

// Before anything is relayed: what is published once the host has started reaches all of its consumers.
void host::impl::subscribe_consumers() {
    for (const auto& each : consumers_.subscribers()) {
        const auto done = sync_wait(
            *runtime_,
            transport_->subscribe({.name = each.name, .topics = each.topics(), .from_start = each.from_start()}));
        if (!done)
            throw failed(
                {done.error().code,
                 transport_title() + " does not take the consumer \"" + each.name + "\": " + done.error().message,
                 std::nullopt});
    }
}

// The outbox forgets an event that was handed over: from then on it is as safe as what carries it.
void host::impl::warn_of_weaker_transport(const store_capabilities& outbox) {
    const survives carried = transport_->capabilities().writes_survive;
    if (carried >= outbox.writes_survive) return;
    log_->warning(transport_title() + " survives " + std::string(to_text(carried)) + ", the outbox " +
                  std::string(to_text(outbox.writes_survive)) +
                  ": events that were committed can be lost on their way; [promises.events] would refuse this");
}

// desk.toml:3: the events plugin "redis" of [events]
std::string host::impl::transport_title() const {
    const std::string name = "\"" + std::string(transport_->name()) + "\"";
    if (!own_transport_) return "the program's own events plugin " + name;
    return config_.events->where + ": the events plugin " + name + " of [events]";
}

// [promises] goes for events as far as that has a meaning; [promises.events] for them alone.
void host::impl::check_event_promises() const {
    const auto& own = config_.event_promises;
    if (transport_ == nullptr) {
        if (own)
            throw failed(
                {errc::configuration, own->who + " needs [events] with plugin = \"memory\", or another", std::nullopt});
        return;
    }
    const transport_capabilities has = transport_->capabilities();
    const auto check = [&](const detail::asked_promises& asked) {
        if (const auto broken = detail::first_broken(asked.what, has))
            throw failed({errc::configuration,
                          asked.who + " asks for " + *broken + ", which " + transport_title() +
                              " cannot promise: " + describe(has),
                          std::nullopt});
    };
    if (own) check(*own);
    for (const auto& asked : {config_.promises, asked_})
        for (const detail::asked_promises& each : asked)
            if (!each.of) check(each);
}

namespace {

std::string in_words(const std::vector<consumer_registry::subscriber>& all) {
    std::string text;
    for (const auto& each : all) text += (text.empty() ? "" : ", ") + each.name;
    return text;
}

} // namespace

void host::impl::start_consumers() {
    if (consumers_.subscribers().empty() || !config_.consumers.work) return;
    const auto inbox = stores_.of(facet::outbox);
    consuming_.emplace(event_worker_parts{.on = *runtime_,
                                          .from = *transport_,
                                          .inbox = inbox ? *inbox : nullptr,
                                          .consumers = consumers_,
                                          .log = *log_,
                                          .policies = policies_.get(),
                                          .client = &*events_},
                       config_.consumers.how);
    detail::value_or_throw(consuming_->start());
    log_->info("consuming events for " + in_words(consumers_.subscribers()) + " as " + consuming_->name());
}

void host::impl::tell_of_running_consumers() noexcept {
    const event_worker_snapshot left = consuming_->snapshot();
    if (left.running.empty()) return;
    if (exit_code_ == 0) exit_code_ = 1;
    const running_event& first = left.running.front();
    log_->error(std::to_string(left.running.size()) + (left.running.size() == 1 ? " consumer goes" : " consumers go") +
                " on although asked to stop, the first is \"" + first.consumer + "\" with \"" + first.topic + "\" " +
                to_text(first.id) + "; another process takes over when its lease has run out");
}

void host::impl::stop_relay() noexcept {
    if (relay_) sync_wait(*runtime_, relay_->stop());
}

} // namespace holdfast
