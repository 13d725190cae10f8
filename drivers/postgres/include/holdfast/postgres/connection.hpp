// One session with the server, and what can go wrong with it. One thread at a time.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <holdfast/error.hpp>

#include <holdfast/postgres/options.hpp>
#include <holdfast/postgres/pqxx_compat.hpp>
#include <holdfast/postgres/statement_table.hpp>
#include <holdfast/postgres/wire.hpp>

namespace holdfast::postgres {

// Which server process served a session, told apart from later ones with the same number.
struct backend {
    std::int64_t id = 0;
    std::string started;
};

class connection {
public:
    // Throws what libpqxx throws.
    explicit connection(const options& how);

    compat::session& session() noexcept { return session_; }
    const backend& served_by() const noexcept { return backend_; }
    // A proxy stands in between: the next transaction may be served by another session.
    bool pooled() const noexcept { return pooled_; }
    // False: the server has closed it, or has said something unasked, while nobody was looking.
    bool alive() const noexcept;
    // Ends whatever is under way from another thread, as if the network had.
    void cut() const noexcept;

    pqxx::result run(pqxx::transaction_base& in, const statement& what, const parameters& with, bool named);

private:
    compat::session session_;
    backend backend_;
    bool pooled_;
    std::set<std::string, std::less<>> prepared_;
};

// What to tell the caller. `wrote`: something may have been changed by what was under way.
error to_error(const compat::fault& what, const options& how, bool wrote);

} // namespace holdfast::postgres
