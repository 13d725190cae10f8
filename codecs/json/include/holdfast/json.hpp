// JSON for described structs: with this header, a struct that BOOST_DESCRIBE_STRUCT has told about is a job's payload.
//
//   struct send_invoice {
//       static constexpr holdfast::job_options options{.name = "invoice.send"};
//       std::string invoice_id;
//       std::vector<std::string> to;
//   };
//   BOOST_DESCRIBE_STRUCT(send_invoice, (), (invoice_id, to))
//
// Members may be bool, numbers, std::string (UTF-8), enums (described ones by name), std::optional, std::vector and other
// sequences, std::array, maps by std::string, durations ("1h30m"), points of the system clock ("2026-11-16T06:01:07Z"),
// identifiers, and described structs; members of described bases count too.
//
// Structs may change between the writer and the reader: members that the text has and the struct has not are skipped,
// members that the text lacks keep the value the struct gives them. Everything else that does not fit is refused, and
// the message says where: "items[3].price: expected a number, found a string".
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <boost/describe.hpp>

#include <holdfast/codec.hpp>
#include <holdfast/detail/json_reader.hpp>
#include <holdfast/detail/json_writer.hpp>
#include <holdfast/error.hpp>

namespace holdfast {

// Refused with errc::invalid_argument: a value that JSON cannot hold (not UTF-8, not a finite number, an enum value
// without a name, nested too deeply).
template <class T>
result<std::string> to_json(const T& value) {
    json::writer to;
    if (to.write(value)) return std::move(to.text);
    return fail(errc::invalid_argument, to.bad.text());
}

template <class T>
result<T> from_json(std::string_view text) {
    json::document read(text);
    if (!read.root) return fail(errc::invalid_argument, std::move(read.why));
    json::problem bad;
    T value{};
    if (json::read(value, *read.root, bad)) return value;
    return fail(errc::invalid_argument, bad.text());
}

template <json::described T>
struct codec<T> {
    static constexpr std::string_view content_type = "application/json";
    static result<std::string> encode(const T& value) { return to_json(value); }
    static result<T> decode(std::string_view body) { return from_json<T>(body); }
};

} // namespace holdfast
