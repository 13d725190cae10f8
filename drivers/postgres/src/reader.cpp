#include <holdfast/postgres/reader.hpp>

namespace holdfast::postgres {

outgoing_message read_message(reader& cells, const identifier& id) {
    outgoing_message message;
    message.id = id;
    message.topic = cells.text();
    message.key = cells.bytes();
    message.what.type = cells.bytes();
    message.what.version = cells.small();
    message.what.content_type = cells.bytes();
    message.extra = decode_headers(cells.bytes());
    message.what.body = cells.bytes();
    return message;
}

} // namespace holdfast::postgres
