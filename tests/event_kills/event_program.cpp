// event_program <publisher|relay|consumer> <configuration>
//
// One of the processes of the kill test. The publisher places orders: a book entry and an event in one unit of work, and
// rolls back one of four. The relay does what its configuration says. The consumer "billing" writes its own entry in the
// unit of work that also notes the event as received; the consumer "audit" notes what it sees in a file.
#include <chrono>
#include <string>

#include <unistd.h>

#include <holdfast/host.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>

#include "jobs/notes.hpp"
#include "orders.hpp"

using namespace std::chrono_literals;
using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr int customers = 8;

template <class T>
T value_of(result<T> answer) {
    if (!answer) throw failed(answer.error());
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

task<void> place(host& at, order what, bool commit) {
    const auto unit = value_of(co_await at.store().begin());
    value_of(co_await at.jobs().enqueue(*unit, placed{what}));
    value_of(co_await at.events().publish(*unit, order_placed{what}));
    if (commit) value_of(co_await unit->commit());
    else value_of(co_await unit->rollback());
}

// Until it is killed, or told to stop by a file.
void publish(host& at) {
    at.start();
    int counts[customers] = {};
    for (int i = 0; !exists("enough"); ++i) {
        const int which = i % customers;
        const bool commit = i % 4 != 3;
        const order what{std::to_string(::getpid()) + "/" + std::to_string(which), commit ? counts[which]++ : -1};
        try {
            sync_wait(at.runtime(), place(at, what, commit));
        } catch (const failed& e) {
            if (e.code() == errc::invalid_argument || e.code() == errc::configuration)
                throw; // a bug; else a bad moment
        }
        std::this_thread::sleep_for(5ms);
    }
}

task<void> bill(host* at, order_placed event, unit_of_work* unit) {
    value_of(co_await at->jobs().enqueue(*unit, billed{event}));
}

int serve(const std::string& role, const std::string& config) {
    auto at = host::from_file(config);
    if (role == "publisher") {
        publish(at);
        return 0;
    }
    if (role == "consumer") {
        constexpr int for_ever = 1'000'000; // a message may see many processes die
        exception_policy rules;             // and a store that is too busy
        rules.default_().retry(3, 20ms).then_redeliver(1000, 100ms, backoff::constant);
        rules.max_total_attempts(for_ever);
        at.add_consumer<order_placed>(
            "billing", [&at](order_placed event, unit_of_work& unit) { return bill(&at, std::move(event), &unit); },
            {.concurrency = 8, .max_crashes = for_ever}, rules);
        at.add_consumer<order_placed>(
            "audit", [](order_placed event) { note("audit", to_text(event)); },
            {.concurrency = 4, .max_crashes = for_ever}, rules);
    }
    return at.run();
}

} // namespace

int main(int, char** arguments) {
    try {
        return serve(arguments[1], arguments[2]);
    } catch (const std::exception& e) {
        note("failed", std::string(arguments[1]) + ": " + e.what());
        return 1;
    }
}
