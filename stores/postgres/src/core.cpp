#include "core.hpp"

#include <thread>

namespace holdfast::postgres {

using namespace std::chrono_literals;

result<connection*> core::reopen(slot& with, const backend& lost) {
    const auto unknown = [&](const std::string& why) {
        return fail(errc::unknown_outcome,
                    "the connection was lost before the answer, and could not be made again: " + why);
    };
    const auto give_up = std::chrono::steady_clock::now() + 5s;
    auto opened = with.open();
    for (; !opened; opened = with.open()) {
        if (std::chrono::steady_clock::now() >= give_up) return unknown(opened.error().message);
        std::this_thread::sleep_for(50ms);
    }
    if (how().pooler) return opened;
    // What the old session was at may still be running, or waiting for a lock.
    try {
        const pool::watch watched(connections, **opened);
        pqxx::nontransaction alone((*opened)->session());
        session here(alone, *opened, connections, texts, true);
        parameters which;
        which.one(column::int4, lost.id).one(column::text, std::string_view(lost.started));
        while (compat::rows(here.run(query::end_backend, which)) > 0) {
            if (std::chrono::steady_clock::now() >= give_up) return unknown("its old session does not end");
            std::this_thread::sleep_for(5ms);
        }
    } catch (...) {
        return unknown(how().without_secrets(compat::current_fault().message));
    }
    return opened;
}

task<result<std::unique_ptr<unit_of_work>>> core::begin() {
    using made = std::unique_ptr<unit_of_work>;
    auto here = [this](slot with) -> result<made> {
        const auto opened = with.open();
        if (!opened) return std::unexpected(opened.error());
        try {
            return std::make_unique<unit>(*this, connections, std::move(with));
        } catch (...) {
            return std::unexpected(to_error(compat::current_fault(), how(), false));
        }
    };
    co_return co_await connections.run<made>(std::move(here));
}

} // namespace holdfast::postgres
