// Every statement that a plugin sends, by name, with its namespace in place. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <holdfast/postgres/naming.hpp>

namespace holdfast::postgres {

// With a name it is prepared once per session, where sessions stay.
struct statement {
    std::string name;
    std::string sql;
};

// Query: an enum whose last value is `count`. Whoever derives from this sets them all.
template <class Query>
class statement_table {
public:
    using query = Query;
    const statement& operator[](Query q) const noexcept { return all_[static_cast<std::size_t>(q)]; }

protected:
    explicit statement_table(std::string_view name) : namespace_(name) {}
    void set(Query q, std::string_view name, std::string_view sql) {
        all_[static_cast<std::size_t>(q)] = {"hf_" + namespace_ + "_" + std::string(name),
                                             in_namespace(sql, namespace_)};
    }

private:
    std::string namespace_;
    std::array<statement, static_cast<std::size_t>(Query::count)> all_;
};

} // namespace holdfast::postgres
