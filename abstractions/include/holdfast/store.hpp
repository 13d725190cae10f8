// A store plugin: which facets it offers, and what it promises. A host may take facets from different stores.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/idempotency_store.hpp>
#include <holdfast/job_store.hpp>
#include <holdfast/lock_store.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/task.hpp>
#include <holdfast/unit_of_work.hpp>

namespace holdfast {

// What an acknowledged write lives through, from least to most.
enum class survives : unsigned char { nothing, process_crash, server_crash, power_loss };

constexpr std::string_view to_text(survives s) noexcept {
    switch (s) {
    case survives::nothing: return "nothing";
    case survives::process_crash: return "process crash";
    case survives::server_crash: return "server crash";
    case survives::power_loss: return "power loss";
    }
    return "unknown";
}

struct store_capabilities {
    survives writes_survive = survives::nothing;
    std::string loses;               // what acknowledged work can be lost, and when: for people
    bool shared = false;             // several processes may use it at once
    bool units_of_work = false;      // begin() works, for the facets offered
    bool joins_transactions = false; // join() works
};

// Any thread. Facets live as long as the store; null = not offered.
class store {
public:
    virtual ~store() = default;

    virtual std::string_view name() const noexcept = 0;
    virtual store_capabilities capabilities() const = 0;

    virtual idempotency_store* idempotency() noexcept { return nullptr; }
    virtual lock_store* locks() noexcept { return nullptr; }
    virtual outbox_store* outbox() noexcept { return nullptr; }
    virtual job_store* jobs() noexcept { return nullptr; }

    // Creates or migrates what the store needs. Safe to call twice and from many processes at once. A schema newer than
    // the plugin is refused with both versions in the message. Call it before anything else.
    virtual task<result<void>> prepare() = 0;
    // The store's clock.
    virtual task<result<store_time>> now() = 0;
    // Removes everything the store keeps, its namespace included, whoever wrote it. For tests and tools; afterwards
    // only prepare() and the destructor may be called.
    virtual task<result<void>> destroy() = 0;

    virtual task<result<std::unique_ptr<unit_of_work>>> begin() {
        co_return fail(errc::unsupported, "this store has no units of work");
    }
    // Makes a unit of work inside the application's own open transaction, which must outlive it.
    virtual task<result<std::unique_ptr<unit_of_work>>> join(native_transaction) {
        co_return fail(errc::unsupported, "this store cannot join a transaction");
    }

protected:
    store() = default;
    store(const store&) = delete;
    store& operator=(const store&) = delete;
};

} // namespace holdfast
