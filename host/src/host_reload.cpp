#include "host_impl.hpp"

#include <algorithm>

namespace holdfast {

void host::impl::warn_of_other_changes(const detail::configuration& read) {
    const auto warn = [&](const std::string& section) {
        log_->warning(config_.name + ": [" + section + "] changed; that counts at the next start");
    };
    if (!config_.runtime.says_the_same_as(read.runtime)) warn("runtime");
    if (config_.plugin_path != read.plugin_path) warn("plugins");
    if (config_.level != read.level) warn("log");
    if (!config_.stores.says_the_same_as(read.stores)) warn("store");
    const auto same = [](const auto& a, const auto& b) { return a.says_the_same_as(b); };
    if (!std::ranges::equal(config_.promises, read.promises, same)) warn("promises");
    if (!std::ranges::is_permutation(config_.schedules, read.schedules, same)) warn("schedules");
    if (!config_.jobs.says_the_same_as(read.jobs)) warn("jobs");
    if (!detail::same_choice(config_.events, read.events)) warn("events");
    if (!config_.relay.says_the_same_as(read.relay)) warn("relay");
    if (!config_.consumers.says_the_same_as(read.consumers)) warn("consumers");
    if (!detail::same_choice(config_.application, read.application)) warn("application");
}

result<void> host::impl::reload() {
    const std::lock_guard lock(reload_mutex_);
    const auto refuse = [&](error why) -> result<void> {
        log_->error("reload refused, nothing was changed: " + why.message);
        return std::unexpected(std::move(why));
    };
    if (file_.empty())
        return refuse({errc::unsupported, config_.name + ": not read from a file, so it cannot be read again", {}});
    auto read = detail::read_configuration_file(file_, config_.name);
    if (!read) return refuse(std::move(read.error()));
    if (auto applied = book_.apply(*read, allow_unknown_policies_, *log_); !applied)
        return refuse(std::move(applied.error()));
    book_.warn(*log_);
    warn_of_other_changes(*read);
    log_->info("reloaded " + config_.name);
    return {};
}

} // namespace holdfast
