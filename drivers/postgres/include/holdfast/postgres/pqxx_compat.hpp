// The differences between libpqxx 6.4, 7.x and 8.x, all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pqxx/pqxx>

#ifndef PQXX_VERSION_MAJOR
#define PQXX_VERSION_MAJOR 6
#define PQXX_VERSION_MINOR 4
#endif
#define HOLDFAST_PQXX(major, minor)                                                                                    \
    (PQXX_VERSION_MAJOR > (major) || (PQXX_VERSION_MAJOR == (major) && PQXX_VERSION_MINOR >= (minor)))

namespace holdfast::postgres::compat {

#if HOLDFAST_PQXX(7, 0)
using connection = pqxx::connection;
#else
using connection = pqxx::connection_base; // what a transaction is made on
#endif

// A session that never opens itself again behind our back, and prints nothing.
#if HOLDFAST_PQXX(7, 10)
using session = pqxx::connection; // final since 8.0
#elif HOLDFAST_PQXX(7, 0)
class session final : public pqxx::connection {
public:
    explicit session(const std::string& url) : pqxx::connection(url.c_str()) {}

private:
    pqxx::quiet_errorhandler quiet_{*this};
};
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
class session final : public pqxx::connection {
public:
    explicit session(const std::string& url) : pqxx::connection(url) { inhibit_reactivation(true); }
    ~session() { disconnect(); } // while it is still quiet

private:
    pqxx::quiet_errorhandler quiet_{*this};
};
#pragma GCC diagnostic pop
#endif

inline session open_session(const std::string& url) {
#if HOLDFAST_PQXX(7, 10)
    session opened(url.c_str());
    opened.set_notice_handler([](pqxx::zview) noexcept {});
    return opened;
#else
    return session(url);
#endif
}

// Binary parameters; their types come from the statement.
#if HOLDFAST_PQXX(7, 0)
inline pqxx::params packed(const std::vector<std::string>& values) {
    pqxx::params all;
    all.reserve(values.size());
    for (const std::string& value : values) {
        const auto* bytes = reinterpret_cast<const std::byte*>(value.data());
#if HOLDFAST_PQXX(7, 10)
        all.append(pqxx::bytes_view(bytes, value.size()));
#else
        all.append(std::basic_string_view<std::byte>(bytes, value.size()));
#endif
    }
    return all;
}
#endif

inline pqxx::result run(pqxx::transaction_base& in, const std::string& sql, const std::vector<std::string>& values) {
#if HOLDFAST_PQXX(7, 10)
    return in.exec(sql, packed(values));
#elif HOLDFAST_PQXX(7, 0)
    return in.exec_params(sql, packed(values));
#else
    const std::vector<pqxx::binarystring> all(values.begin(), values.end());
    return in.exec_params(sql, pqxx::prepare::make_dynamic_params(all));
#endif
}

inline pqxx::result run_prepared(pqxx::transaction_base& in, const std::string& name,
                                 const std::vector<std::string>& values) {
#if HOLDFAST_PQXX(7, 10)
    return in.exec(pqxx::prepped{name}, packed(values));
#elif HOLDFAST_PQXX(7, 0)
    return in.exec_prepared(name, packed(values));
#else
    const std::vector<pqxx::binarystring> all(values.begin(), values.end());
    return in.exec_prepared(name, pqxx::prepare::make_dynamic_params(all));
#endif
}

inline std::size_t rows(const pqxx::result& from) {
    return static_cast<std::size_t>(from.size());
}

// The cells of one row, left to right; nothing for NULL. What it gives is valid as long as the result.
#if HOLDFAST_PQXX(8, 0)
class cells {
public:
    cells(const pqxx::result& from, std::size_t row) noexcept : from_(from), row_(row) {}
    std::optional<std::string_view> next() {
        const auto field = from_[static_cast<pqxx::result::size_type>(row_)][static_cast<int>(column_++)];
        if (field.is_null()) return std::nullopt;
        return std::string_view(field.c_str(), field.size());
    }
    void skip() noexcept { ++column_; }

private:
    const pqxx::result& from_;
    std::size_t row_;
    std::size_t column_ = 0;
};
#else // a row and a field are shared owners of the result: one iterator costs less than many of those
class cells {
public:
    cells(const pqxx::result& from, std::size_t row) : at_(from[static_cast<pqxx::result::size_type>(row)].begin()) {}
    std::optional<std::string_view> next() {
        std::optional<std::string_view> cell;
        if (!at_->is_null()) cell.emplace(at_->c_str(), at_->size());
        ++at_;
        return cell;
    }
    void skip() { ++at_; }

private:
    pqxx::row::const_iterator at_;
};
#endif

// Calls heard(payload, backend that sent it) from inside get_notifs() of that session.
#if HOLDFAST_PQXX(7, 10)
class listener {
public:
    listener(session& on, const std::string& channel, std::function<void(std::string_view, int)> heard)
        : on_(on), channel_(channel) {
        on_.listen(channel_, [heard](const pqxx::notification& n) { heard(n.payload, n.backend_pid); });
    }
    ~listener() {
        try {
            on_.listen(channel_);
        } catch (const std::exception&) { // the connection is gone, and the listening with it
        }
    }
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;

private:
    session& on_;
    const std::string channel_;
};
#else
class listener final : pqxx::notification_receiver {
public:
    listener(session& on, const std::string& channel, std::function<void(std::string_view, int)> heard)
        : pqxx::notification_receiver(on, channel), heard_(std::move(heard)) {}

private:
    void operator()(const std::string& payload, int backend) override { heard_(payload, backend); }
    std::function<void(std::string_view, int)> heard_;
};
#endif

struct fault {
    enum class kind : unsigned char {
        lost,        // the connection is gone; what was under way may have been done
        in_doubt,    // the same, during a commit
        rolled_back, // deadlock or serialization failure: nothing happened, again may help
        refused,     // an error from the server; sqlstate says which
        other,
    } what = kind::other;
    std::string sqlstate;
    std::string message;
};

// Call inside a catch block.
inline fault current_fault() {
    const auto lost = [](std::string_view state) { return state.starts_with("08") || state.starts_with("57P0"); };
    try {
        throw;
    } catch (const pqxx::in_doubt_error& e) {
        return {fault::kind::in_doubt, {}, e.what()};
    } catch (const pqxx::broken_connection& e) {
        return {fault::kind::lost, {}, e.what()};
    } catch (const pqxx::statement_completion_unknown& e) {
        return {fault::kind::lost, {}, e.what()};
    } catch (const pqxx::transaction_rollback& e) {
        return {fault::kind::rolled_back, {}, e.what()};
    } catch (const pqxx::sql_error& e) {
        const std::string_view state = e.sqlstate();
        return {lost(state) ? fault::kind::lost : fault::kind::refused, std::string(state), e.what()};
    } catch (const std::exception& e) {
        return {fault::kind::other, {}, e.what()};
    } catch (...) {
        return {fault::kind::other, {}, "something that is not a std::exception was thrown"};
    }
}

} // namespace holdfast::postgres::compat
