#include "store.hpp"

#include "rows.hpp"
#include "schema_sql.hpp"

namespace holdfast::postgres {

store_capabilities server_store::capabilities() const {
    const std::lock_guard lock(mutex_);
    store_capabilities c;
    c.shared = true;
    c.units_of_work = true;
    c.joins_transactions = true;
    c.writes_survive = durability_.writes_survive();
    c.loses = durability_.loses();
    return c;
}

task<result<void>> server_store::prepare() {
    auto preparing = postgres::prepare(core_.connections, store_schema());
    auto found = co_await std::move(preparing);
    if (!found) co_return std::unexpected(std::move(found.error()));
    const std::lock_guard lock(mutex_);
    durability_ = std::move(*found);
    co_return result<void>{};
}

task<result<void>> server_store::destroy() {
    auto removing = remove_schema(core_.connections);
    auto removed = co_await std::move(removing);
    if (removed) core_.forget_queues();
    co_return removed;
}

task<result<store_time>> server_store::now() {
    auto run = [](session& here) { return to_store_time(reader(here.run(query::now, {}), 0).integer()); };
    co_return co_await core_.call<store_time>(after_loss::again, run);
}

namespace {

template <class... Kind>
pqxx::transaction_base* transaction_in(const native_transaction& theirs) {
    pqxx::transaction_base* found = nullptr;
    ((found == nullptr && theirs.as<Kind>() != nullptr ? void(found = theirs.as<Kind>()) : void()), ...);
    return found;
}

} // namespace

task<result<std::unique_ptr<unit_of_work>>> server_store::join(native_transaction theirs) {
    pqxx::transaction_base* const in =
        transaction_in<pqxx::transaction_base, pqxx::dbtransaction, pqxx::work,
                       pqxx::transaction<pqxx::repeatable_read>, pqxx::transaction<pqxx::serializable>>(theirs);
    if (in == nullptr || dynamic_cast<pqxx::nontransaction*>(in) != nullptr)
        co_return fail(errc::invalid_argument,
                       "expected a pqxx::work or another pqxx::transaction_base that can roll back");
    co_return std::make_unique<unit>(core_, core_.connections, *in);
}

} // namespace holdfast::postgres
