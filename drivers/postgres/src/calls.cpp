#include <holdfast/postgres/calls.hpp>

#include <thread>

namespace holdfast::postgres {

using namespace std::chrono_literals;

namespace {

const statement end_backend = {
    "hf_end_backend",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_get_activity($1::int4) WHERE backend_start::text = $2::text"};

}

result<connection*> reopen(pool& of, slot& with, const backend& lost) {
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
    if (of.pooled()) return opened;
    // What the old session was at may still be running, or waiting for a lock.
    try {
        const pool::watch watched(of, **opened);
        pqxx::nontransaction alone((*opened)->session());
        parameters which;
        which.one(column::int4, lost.id).one(column::text, std::string_view(lost.started));
        while (compat::rows((*opened)->run(alone, end_backend, which, !of.pooled())) > 0) {
            if (std::chrono::steady_clock::now() >= give_up) return unknown("its old session does not end");
            std::this_thread::sleep_for(5ms);
        }
    } catch (...) {
        return unknown(of.how().without_secrets(compat::current_fault().message));
    }
    return opened;
}

} // namespace holdfast::postgres
