#include <holdfast/postgres/connection.hpp>

#include <cerrno>

#include <sys/socket.h>

namespace holdfast::postgres {

// A proxy that shares sessions greets with a number of its own, and not with that of the server process. Through one
// nothing may be set: somebody else would get it.
connection::connection(const options& how) : session_(compat::open_session(how.connect_url())), pooled_(how.pooler) {
    if (pooled_) return;
    const std::string greeted = std::to_string(session_.backendpid());
    pqxx::nontransaction setup(session_);
    const pqxx::result answer = setup.exec(
        "SELECT here.id, (SELECT backend_start::text FROM pg_stat_get_activity(here.id)), "
        "CASE WHEN here.id = " +
        greeted +
        " THEN concat(set_config('client_min_messages', 'warning', false), set_config('bytea_output', 'hex', false), "
        "set_config('default_transaction_isolation', 'read committed', false), set_config('statement_timeout', '" +
        std::to_string(micros(how.statement_timeout) / 1000) + "', false)) END FROM pg_backend_pid() AS here(id)");
    compat::cells cells(answer, 0);
    backend_.id = decode_integer(cells.next().value_or("0")).value_or(0);
    backend_.started = cells.next().value_or("");
    pooled_ = std::to_string(backend_.id) != greeted;
}

bool connection::alive() const noexcept {
    if (!session_.is_open()) return false;
    char byte = 0;
    const auto got = ::recv(session_.sock(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void connection::cut() const noexcept {
    if (const int socket = session_.sock(); socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

pqxx::result connection::run(pqxx::transaction_base& in, const statement& what, const parameters& with, bool named) {
    if (!named || what.name.empty()) return compat::run(in, what.sql, with.values());
    if (!prepared_.contains(what.name)) {
        session_.prepare(what.name, what.sql);
        prepared_.insert(what.name);
    }
    return compat::run_prepared(in, what.name, with.values());
}

error to_error(const compat::fault& what, const options& how, bool wrote) {
    using kind = compat::fault::kind;
    const std::string place = how.place() + ": ";
    const std::string message = how.without_secrets(what.message);
    const auto say = [&](errc code, const std::string& text) { return error{code, place + text, std::nullopt}; };
    const std::string_view state = what.sqlstate;
    switch (what.what) {
    case kind::lost:
    case kind::in_doubt:
        if (wrote) return say(errc::unknown_outcome, "the connection was lost before the answer: " + message);
        return say(errc::unavailable, message);
    case kind::rolled_back: return say(errc::unavailable, "rolled back, again and again: " + message);
    case kind::other: return say(errc::internal, message);
    case kind::refused: break;
    }
    if (state == "25006") return say(errc::unavailable, "the server is read-only: " + message);
    if (state == "57014") return say(errc::unavailable, "longer than statement_timeout allows: " + message);
    if (state.starts_with("53")) return say(errc::unavailable, message);
    if (state == "42501") return say(errc::configuration, "this user lacks a right: " + message);
    if (state.starts_with("42") || state == "3F000")
        return say(errc::configuration, "the schema \"" + how.name + "\" is not prepared: " + message);
    if (state == "25P02") return say(errc::unavailable, "the transaction was given up after an earlier error");
    if (state.starts_with("22")) return say(errc::invalid_argument, message);
    if (state == "54000" || state == "54001") return say(errc::too_large, message);
    return say(errc::internal, message + " (" + what.sqlstate + ")");
}

} // namespace holdfast::postgres
