#include <holdfast/consumer_registry.hpp>

#include <algorithm>

#include <holdfast/detail/exception_type.hpp>
#include <holdfast/store_limits.hpp>

namespace holdfast {

namespace {

constexpr std::size_t longest_name = 1000; // the inbox adds a little to it

std::unexpected<error> wrong(const event_consumer& which, const std::string& why) {
    return fail(errc::invalid_argument,
                "consumer \"" + std::string(which.name()) + "\" of \"" + std::string(which.topic()) + "\": " + why);
}

result<void> check(const event_consumer& which) {
    if (auto fine = store_limits::check_name("name of a consumer", which.name()); !fine) return fine;
    if (which.name().size() > longest_name) return wrong(which, "its name has more than 1000 bytes");
    if (auto fine = store_limits::check_name("topic of a consumer", which.topic()); !fine) return fine;
    const consumer_options& o = which.options();
    if (o.concurrency < 1) return wrong(which, ".concurrency must be 1 or more");
    if (o.timeout && *o.timeout <= duration::zero()) return wrong(which, ".timeout must be longer than 0");
    if (o.remember <= duration::zero())
        return wrong(which, ".remember must be longer than 0; .inbox = false switches the inbox off");
    if (o.max_crashes < 0) return wrong(which, ".max_crashes is negative; 0 = the first crash is the last");
    return {};
}

std::string say(const consumers_failed::each& failure) {
    return failure.consumer + " (" + detail::exception_type_name(failure.error) + ": " +
           detail::exception_message(failure.error) + ")";
}

} // namespace

event_consumer* consumer_registry::subscriber::find(std::string_view topic) const noexcept {
    const auto found = std::ranges::find(consumers, topic, &event_consumer::topic);
    return found == consumers.end() ? nullptr : *found;
}

int consumer_registry::subscriber::concurrency() const noexcept {
    int most = 1;
    for (const event_consumer* each : consumers) most = std::max(most, each->options().concurrency);
    return most;
}

bool consumer_registry::subscriber::from_start() const noexcept {
    return std::ranges::any_of(consumers, [](const event_consumer* each) { return each->options().from_start; });
}

std::vector<std::string> consumer_registry::subscriber::topics() const {
    std::vector<std::string> all;
    for (const event_consumer* each : consumers) all.emplace_back(each->topic());
    return all;
}

result<void> consumer_registry::add(std::unique_ptr<event_consumer> one) {
    if (auto fine = check(*one); !fine) return fine;
    auto place = std::ranges::find(subscribers_, one->name(), &subscriber::name);
    if (place == subscribers_.end()) {
        subscribers_.push_back({std::string(one->name()), {}});
        place = subscribers_.end() - 1;
    }
    if (place->find(one->topic()) != nullptr)
        return fail(errc::duplicate, "there are two consumers named \"" + std::string(one->name()) + "\" of \"" +
                                         std::string(one->topic()) +
                                         "\": give them names of their own, and each gets every event");
    place->consumers.push_back(one.get());
    integration_.push_back(std::move(one));
    return {};
}

result<void> consumer_registry::add(std::unique_ptr<domain_consumer> one) {
    for (const auto& each : domain_)
        if (each->name() == one->name() && each->topic() == one->topic())
            return fail(errc::duplicate, "there are two domain consumers named \"" + std::string(one->name()) +
                                             "\" of \"" + std::string(one->topic()) + "\"");
    domain_.push_back(std::move(one));
    return {};
}

void consumer_registry::on_error(std::string consumer, exception_policy rules) {
    own_rules_.insert_or_assign(std::move(consumer), std::move(rules));
}
void consumer_registry::on_error(error_scope scope, exception_policy rules) {
    rules_.insert_or_assign(scope, std::move(rules));
}

exception_table consumer_registry::error_rules(std::string_view consumer) const {
    static const exception_policy standard = exception_policy::standard();
    const auto own = own_rules_.find(consumer);
    const auto of = [&](error_scope scope) {
        const auto found = rules_.find(scope);
        return found == rules_.end() ? nullptr : &found->second;
    };
    const exception_policy* host = of(error_scope::host);
    return resolve({.consumer = own == own_rules_.end() ? nullptr : &own->second,
                    .transport = of(error_scope::transport),
                    .bus = of(error_scope::bus),
                    .host = host != nullptr ? host : &standard});
}

std::vector<domain_consumer*> consumer_registry::domain_consumers(std::string_view topic) const {
    std::vector<domain_consumer*> found;
    for (const auto& each : domain_)
        if (each->topic() == topic) found.push_back(each.get());
    return found;
}

task<void> inline_dispatcher::dispatch(std::string_view topic, const void* event, const std::type_info& of,
                                       unit_of_work& in) {
    std::vector<consumers_failed::each> failures;
    const auto all = consumers_.domain_consumers(topic);
    for (domain_consumer* each : all) {
        std::exception_ptr thrown;
        try {
            auto running = each->run(event, of, on_, in);
            auto ended = co_await std::move(running);
            if (!ended) thrown = std::make_exception_ptr(failed(std::move(ended.error())));
        } catch (...) {
            thrown = std::current_exception();
        }
        if (thrown) failures.push_back({std::string(each->name()), std::move(thrown)});
    }
    if (failures.empty()) co_return;
    std::string message = std::to_string(failures.size()) + " of " + std::to_string(all.size()) +
                          " domain consumers of \"" + std::string(topic) + "\" failed: ";
    for (std::size_t i = 0; i < failures.size(); ++i) message += (i == 0 ? "" : ", ") + say(failures[i]);
    throw consumers_failed(message, std::move(failures));
}

} // namespace holdfast
