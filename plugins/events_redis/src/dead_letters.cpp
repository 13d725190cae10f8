#include "decode.hpp"
#include "transport.hpp"

namespace holdfast::events_redis {

using redis::access;
using redis::arguments;
using redis::call;
using redis::reply;

namespace {

arguments name_and_ids(std::string subscription, const std::vector<identifier>& which) {
    arguments with;
    with.add(std::move(subscription));
    for (const identifier& each : which) with.add(each);
    return with;
}

} // namespace

task<result<dead_message_page>> transport::dead_messages(dead_message_filter filter, int limit, std::string cursor) {
    if (limit < 1) co_return fail(errc::invalid_argument, "a page needs a limit of 1 or more");
    if (cursor.find_first_not_of("0123456789") != std::string::npos)
        co_return fail(errc::invalid_argument, "the cursor is not one that this transport gave");
    arguments with;
    with.add(filter.subscription.value_or("")).add(filter.topic.value_or(""));
    with.add(cursor.empty() ? std::string("+inf") : std::move(cursor)).add(std::int64_t{limit} + 1);
    auto asking = server_.run(script::dead_messages, std::move(with), access::read);
    auto answer = co_await std::move(asking);
    const auto decode = [&](reply& from) {
        dead_message_page page;
        std::string last;
        for (reply& each : from.items) {
            if (page.messages.size() == static_cast<std::size_t>(limit)) {
                page.next = std::move(last);
                break;
            }
            auto [message, death] = decode_dead(each);
            page.messages.push_back(std::move(message));
            last = std::move(death);
        }
        return page;
    };
    co_return redis::decoded<dead_message_page>(std::move(answer), decode);
}

task<result<std::optional<dead_message>>> transport::dead_message_of(std::string subscription, identifier id) {
    arguments with;
    with.add(std::move(subscription)).add(id);
    const auto decode = [](reply& from) -> std::optional<dead_message> {
        if (from.is_nil()) return std::nullopt;
        return decode_dead(from).first;
    };
    co_return co_await call<std::optional<dead_message>>(server_, script::dead_message, std::move(with), access::read,
                                                         decode);
}

task<result<int>> transport::send_again(std::string subscription, std::vector<identifier> which) {
    co_return co_await call<int>(server_, script::send_again, name_and_ids(std::move(subscription), which),
                                 access::write, redis::to_count);
}

task<result<int>> transport::discard(std::string subscription, std::vector<identifier> which) {
    co_return co_await call<int>(server_, script::discard, name_and_ids(std::move(subscription), which), access::write,
                                 redis::to_count);
}

} // namespace holdfast::events_redis
