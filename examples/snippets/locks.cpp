// What docs/locks.md quotes.
#include <string>
#include <vector>

#include <holdfast/fence.hpp>
#include <holdfast/host.hpp>
#include <holdfast/lock_keeper.hpp>
#include <holdfast/sync_wait.hpp>

#include "check.hpp"

namespace {

// [report]
holdfast::task<bool> write_report(holdfast::lock_keeper& locks, holdfast::guarded<std::vector<std::string>>& archive) {
    auto lock = co_await locks.try_acquire("report-2026-11", {.ttl = std::chrono::minutes{1}});
    if (!lock) throw holdfast::failed(lock.error()); // the store is away
    if (!*lock) co_return false;                     // somebody else is at it
    // The long part: it watches (*lock)->lost(), and ends when that fires.
    const auto kept = archive.with(**lock, [](auto& pages) { pages.push_back("November"); });
    co_return kept.has_value(); // false: a newer holder was here meanwhile
}
// [/report]

} // namespace

int main() {
    auto host = holdfast::host::from_text("[store]\nplugin = \"memory\"\n");
    host.start();
    holdfast::guarded<std::vector<std::string>> archive;
    // [keeper]
    holdfast::lock_keeper locks(host.locks(), host.runtime(), &host.log());
    const bool written = sync_wait(host.runtime(), write_report(locks, archive));
    sync_wait(host.runtime(), locks.close()); // before it goes away: every lock has been given back
    // [/keeper]
    check(written, "the report was written");
    std::puts("ok");
}
