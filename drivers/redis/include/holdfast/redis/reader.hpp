// Replies of scripts as values. Pure. A reply of another shape than expected throws failed(errc::internal).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <holdfast/identifier.hpp>
#include <holdfast/outbox_store.hpp>
#include <holdfast/redis/client.hpp>

namespace holdfast::redis {

// Digits alone.
std::int64_t to_number(std::string_view text);

// Takes the elements of a list one after the other.
class reader {
public:
    explicit reader(reply& list);
    bool more() const noexcept { return at_ < list_.items.size(); }
    reply& next();
    std::string text() { return std::move(next().text); }
    // Of an integer, or of digits.
    std::int64_t number();
    std::uint64_t token() { return static_cast<std::uint64_t>(number()); }
    int integer() { return static_cast<int>(number()); }
    bool flag() { return number() != 0; }
    identifier id();
    payload what();

private:
    reply& list_;
    std::size_t at_ = 0;
};

std::vector<write_answer> decode_answers(reply& from);

} // namespace holdfast::redis
