#include <memory>

#include <holdfast/plugin.hpp>
#include <holdfast/version.hpp>

#include "store.hpp"

namespace {

std::unique_ptr<holdfast::store> make_store(holdfast::plugin_context& context) {
    if (context.runtime() == nullptr)
        throw holdfast::failed({holdfast::errc::plugin, "the postgres store needs a runtime", {}});
    return std::make_unique<holdfast::postgres::server_store>(
        holdfast::postgres::store_options::from(context.settings()), *context.runtime());
}

} // namespace

HOLDFAST_STORE_PLUGIN("postgres", holdfast::version_text, "jobs, outbox, locks and idempotency on a PostgreSQL server",
                      &make_store)
