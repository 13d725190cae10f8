// Answers of the server as values. What is not as it must be throws failed(errc::internal).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/error.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/postgres/pqxx_compat.hpp>
#include <holdfast/postgres/wire.hpp>

namespace holdfast::postgres {

// The cells of one row, left to right.
class reader {
public:
    reader(const pqxx::result& from, std::size_t row) : cells_(from, row) {}

    std::optional<std::string_view> next() {
        ++column_;
        return cells_.next();
    }
    std::string text() { return std::string(next().value_or(std::string_view())); }
    bool flag() { return next() == std::string_view("t"); }
    std::int64_t integer() { return must(optional_integer()); }
    std::optional<std::int64_t> optional_integer() {
        const auto cell = next();
        return cell ? std::optional(must(decode_integer(*cell))) : std::nullopt;
    }
    int small() { return static_cast<int>(integer()); }
    identifier id() { return must(optional_id()); }
    std::optional<identifier> optional_id() {
        const auto cell = next();
        return cell ? std::optional(must(decode_uuid(*cell))) : std::nullopt;
    }
    std::string bytes() { return optional_bytes().value_or(std::string()); } // NULL: empty
    std::optional<std::string> optional_bytes() {
        const auto cell = next();
        return cell ? std::optional(must(decode_bytes(*cell))) : std::nullopt;
    }
    store_time time() { return to_store_time(integer()); }
    std::optional<store_time> optional_time() {
        const auto at = optional_integer();
        return at ? std::optional(to_store_time(*at)) : std::nullopt;
    }
    void skip() {
        ++column_;
        cells_.skip();
    }

private:
    template <class T>
    T must(std::optional<T> value) const {
        if (value) return *std::move(value);
        throw failed({errc::internal,
                      "PostgreSQL: column " + std::to_string(column_) + " of an answer is not what was asked for",
                      {}});
    }
    compat::cells cells_;
    std::size_t column_ = 0;
};

// Topic, key, type, version, content type, headers and body, from the reader's place on.
outgoing_message read_message(reader& from, const identifier& id);

} // namespace holdfast::postgres
