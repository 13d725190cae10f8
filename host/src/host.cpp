#include <holdfast/host.hpp>

#include "host_impl.hpp"

namespace holdfast {

host::host(std::unique_ptr<impl> made) noexcept : impl_(std::move(made)) {}
host::host(host&&) noexcept = default;
host& host::operator=(host&&) noexcept = default;
host::~host() = default;

host host::from_file(const std::filesystem::path& file) {
    auto read = detail::read_configuration_file(file, file.string());
    if (!read) throw failed(std::move(read.error()));
    return host(std::make_unique<impl>(std::move(*read), std::filesystem::absolute(file)));
}

host host::from_text(std::string_view toml, std::string_view name) {
    auto read = detail::read_configuration(toml, std::string(name));
    if (!read) throw failed(std::move(read.error()));
    return host(std::make_unique<impl>(std::move(*read), std::filesystem::path()));
}

void host::add_one(const policy& p) {
    impl_->add(p);
}

void host::add_kind(std::unique_ptr<job_type> kind) {
    impl_->add(std::move(kind));
}

void host::add_one(std::unique_ptr<event_consumer> one) {
    impl_->add(std::move(one));
}

void host::add_rules(std::string consumer, exception_policy rules) {
    impl_->use(std::move(consumer), std::move(rules));
}

void host::add_one(std::unique_ptr<domain_consumer> one) {
    impl_->add(std::move(one));
}

host& host::use(holdfast::runtime& mine) {
    impl_->use(mine);
    return *this;
}

host& host::use(holdfast::store& mine) {
    impl_->use(mine);
    return *this;
}

host& host::use(exception_policy rules) {
    impl_->use(std::move(rules));
    return *this;
}

host& host::use(error_scope of, exception_policy rules) {
    impl_->use(of, std::move(rules));
    return *this;
}

host& host::use(holdfast::event_transport& mine) {
    impl_->use(mine);
    return *this;
}

host& host::require(const promises& asked) {
    impl_->require(asked);
    return *this;
}

host& host::require(facet of, const promises& asked) {
    impl_->require(of, asked);
    return *this;
}

host& host::log_to(std::shared_ptr<logger> sink) {
    impl_->log_to(std::move(sink));
    return *this;
}

host& host::allow_unknown_policies() {
    impl_->allow_unknown_policies();
    return *this;
}

host& host::without_stores() {
    impl_->without_stores();
    return *this;
}

host& host::without_work() {
    impl_->without_work();
    return *this;
}

void host::start() {
    impl_->start();
}

holdfast::policies& host::policies() {
    impl_->must_be_started("policies");
    return impl_->policies();
}

holdfast::runtime& host::runtime() {
    impl_->must_be_started("runtime");
    return impl_->runtime();
}

logger& host::log() {
    return impl_->log();
}

holdfast::store& host::store() {
    impl_->must_be_started("store");
    return impl_->store();
}

holdfast::store& host::store_of(facet f) {
    impl_->must_be_started("store_of");
    return impl_->store_of(f);
}

idempotency_store& host::idempotency() {
    impl_->must_be_started("idempotency");
    return impl_->idempotency();
}

lock_store& host::locks() {
    impl_->must_be_started("locks");
    return impl_->locks();
}

outbox_store& host::outbox() {
    impl_->must_be_started("outbox");
    return impl_->outbox();
}

holdfast::job_store& host::job_store() {
    impl_->must_be_started("job_store");
    return impl_->job_store();
}

holdfast::jobs& host::jobs() {
    impl_->must_be_started("jobs");
    return impl_->jobs();
}

host& host::add(recurring_job which) {
    impl_->add(std::move(which));
    return *this;
}

task<result<std::vector<schedule_status>>> host::schedules() {
    impl_->must_be_started("schedules");
    return impl_->schedules();
}

worker_snapshot host::worker() const {
    impl_->must_be_started("worker");
    return impl_->worker();
}

holdfast::events& host::events() {
    impl_->must_be_started("events");
    return impl_->events();
}

holdfast::event_transport& host::event_transport() {
    impl_->must_be_started("event_transport");
    return impl_->event_transport();
}

relay_snapshot host::relay() const {
    impl_->must_be_started("relay");
    return impl_->relay();
}

event_worker_snapshot host::consumers() const {
    impl_->must_be_started("consumers");
    return impl_->consumers();
}

int host::run() {
    return impl_->run();
}

void host::request_stop() noexcept {
    impl_->request_stop();
}

result<void> host::reload() {
    return impl_->reload();
}

void host::stop() noexcept {
    impl_->stop();
}

std::vector<policy_in_force> host::policies_in_force() const {
    impl_->must_be_started("policies_in_force");
    return impl_->policies_in_force();
}

std::vector<consumer_rules> host::rules_in_force() const {
    impl_->must_be_started("rules_in_force");
    return impl_->rules_in_force();
}

std::vector<store_in_use> host::stores_in_use() const {
    impl_->must_be_started("stores_in_use");
    return impl_->stores_in_use();
}

std::vector<std::filesystem::path> host::plugin_folders() const {
    return impl_->plugin_folders();
}

bool host::has_application() const noexcept {
    return impl_->has_application();
}

bool host::has_events() const noexcept {
    return impl_->has_events();
}

} // namespace holdfast
