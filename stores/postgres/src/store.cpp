#include "store.hpp"

#include "migrate.hpp"
#include "rows.hpp"

namespace holdfast::postgres {

store_capabilities server_store::capabilities() const {
    const std::lock_guard lock(mutex_);
    store_capabilities c;
    c.shared = true;
    c.units_of_work = true;
    c.joins_transactions = true;
    if (durability_.known && (!durability_.fsync || !durability_.full_page_writes)) {
        c.writes_survive = survives::server_crash;
        c.loses = "everything, when the machine loses power: the server runs with fsync or full_page_writes off";
    } else if (durability_.known && durability_.synchronous_commit == "off") {
        c.writes_survive = survives::process_crash;
        c.loses = "the last fraction of a second, when the server crashes: it runs with synchronous_commit off";
    } else {
        c.writes_survive = survives::power_loss;
        c.loses = "nothing acknowledged, while the disk is good; after a failover to an asynchronous replica, what it "
                  "had not received";
    }
    return c;
}

task<result<void>> server_store::prepare() {
    auto here = [this](slot with) -> result<void> {
        for (int tries = 0;; ++tries) {
            const auto opened = with.open();
            if (!opened) return std::unexpected(opened.error());
            try {
                const pool::watch watched(core_.connections, **opened);
                pqxx::work transaction((*opened)->session());
                migrate(core_, transaction);
                const pqxx::result rows =
                    transaction.exec("SELECT current_setting('fsync'), "
                                     "current_setting('full_page_writes'), current_setting('synchronous_commit')");
                transaction.commit();
                reader cells(rows, 0);
                const std::lock_guard lock(mutex_);
                durability_.known = true;
                durability_.fsync = cells.text() == "on";
                durability_.full_page_writes = cells.text() == "on";
                durability_.synchronous_commit = cells.text();
                return {};
            } catch (const failed& e) {
                return std::unexpected(e.what_failed());
            } catch (...) {
                const compat::fault trouble = compat::current_fault();
                const bool lost = !(*opened)->session().is_open();
                if (lost) with.drop();
                // Safe to do again whatever became of it.
                if (tries < 3 && (lost || trouble.what == compat::fault::kind::rolled_back)) continue;
                return std::unexpected(to_error(trouble, core_.how(), false));
            }
        }
    };
    co_return co_await core_.connections.run<void>(std::move(here));
}

task<result<void>> server_store::destroy() {
    auto here = [this](slot with) -> result<void> {
        const auto opened = with.open();
        if (!opened) return std::unexpected(opened.error());
        try {
            pqxx::work transaction((*opened)->session());
            remove_schema(core_, transaction);
            transaction.commit();
        } catch (...) {
            return std::unexpected(to_error(compat::current_fault(), core_.how(), true));
        }
        core_.forget_queues();
        return {};
    };
    co_return co_await core_.connections.run<void>(std::move(here));
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
