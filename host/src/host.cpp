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

host& host::use(holdfast::runtime& mine) {
    impl_->use(mine);
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

std::vector<std::filesystem::path> host::plugin_folders() const {
    return impl_->plugin_folders();
}

bool host::has_application() const noexcept {
    return impl_->has_application();
}

} // namespace holdfast
