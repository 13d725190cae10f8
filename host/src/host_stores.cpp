#include "host_impl.hpp"

namespace holdfast {

holdfast::store& host::impl::store() {
    return *detail::value_or_throw(stores_.main());
}

holdfast::store& host::impl::store_of(facet f) {
    return *detail::value_or_throw(stores_.of(f));
}

void host::impl::use(holdfast::store& mine) {
    must_be_setting_up("use");
    if (config_.stores.main)
        throw failed({errc::configuration,
                      config_.stores.main->where + ": [store] must go: the program brings its own store",
                      std::nullopt});
    if (stores_.main()) throw failed({errc::invalid_argument, "host.use() was given a store already", std::nullopt});
    stores_.lend(mine);
}

void host::impl::without_stores() {
    must_be_setting_up("without_stores");
    without_stores_ = true;
}

void host::impl::require(const promises& asked, std::optional<facet> of) {
    if (phase_ != phase::starting) must_be_setting_up("require");
    asked_.push_back({phase_ == phase::starting ? "the application" : "host.require()", asked, of});
}

void host::impl::open_store(const detail::plugin_choice& choice, std::optional<facet> only) {
    const loaded_plugin plugin = find(choice, plugin_kind::store);
    auto made = create_store(plugin, choice.to_settings(config_.folder), *log_, *runtime_);
    if (!made) throw failed(std::move(made.error()));
    detail::value_or_throw(stores_.add(choice, only, std::move(*made)));
    log_->debug(choice.section + " store " + std::string(plugin.name()) + " " + std::string(plugin.version()) +
                " from " + plugin.file().string());
}

// Capabilities may depend on the server, so promises are checked once it was reached.
void host::impl::start_stores() {
    if (config_.stores.main) open_store(*config_.stores.main, std::nullopt);
    for (const facet each : all_facets)
        if (const auto& choice = config_.stores.of(each)) open_store(*choice, each);
    stores_.share_out();
    detail::value_or_throw(stores_.prepare(*runtime_, *log_, [this] { stop_own_runtime(); }));
    detail::value_or_throw(stores_.check(config_.promises));
    detail::value_or_throw(stores_.check(asked_));
}

} // namespace holdfast
