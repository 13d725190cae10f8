#include "record.hpp"

#include <bit>
#include <concepts>

#include <holdfast/redis/arguments.hpp>

namespace holdfast::redis {

namespace {

[[noreturn]] void surprised() {
    throw failed({errc::internal, "redis: a record has a form that this plugin does not know", {}});
}

// Big-endian, as the scripts' struct library writes.
class packer {
public:
    std::string text;

    void number(std::unsigned_integral auto value) {
        for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8)
            text += static_cast<char>((value >> shift) & 0xFFu);
    }
    void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
    template <std::unsigned_integral Size>
    void words(std::string_view value) {
        number(static_cast<Size>(value.size()));
        text += value;
    }
};

class unpacker {
public:
    explicit unpacker(std::string_view packed) : rest_(packed) {}

    template <std::unsigned_integral T>
    T number() {
        T value = 0;
        for (const char c : take(sizeof(T)))
            value = static_cast<T>((std::uint64_t{value} << 8) | static_cast<unsigned char>(c));
        return value;
    }
    int integer() { return static_cast<int>(number<std::uint32_t>()); }
    double real() { return std::bit_cast<double>(number<std::uint64_t>()); }
    template <std::unsigned_integral Size>
    std::string words() {
        return std::string(take(number<Size>()));
    }

private:
    std::string_view take(std::size_t size) {
        if (size > rest_.size()) surprised();
        const auto taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::string_view rest_;
};

} // namespace

std::string pack(const record& r) {
    packer p;
    p.text.reserve(96 + r.queue.size() + r.unique_key.size() + r.parent.size());
    p.number(static_cast<std::uint8_t>(r.state));
    p.number(static_cast<std::uint16_t>(r.flags));
    p.number(static_cast<std::uint8_t>(r.max_attempts));
    for (const double each : {r.token, r.due, r.keep, r.created, r.ended, r.started}) p.real(each);
    for (const int each : {r.attempts, r.crash_count, r.max_crashes, r.generation, r.priority})
        p.number(static_cast<std::uint32_t>(each));
    p.words<std::uint16_t>(r.queue);
    p.words<std::uint32_t>(r.worker);
    p.words<std::uint16_t>(r.unique_key);
    p.words<std::uint16_t>(r.parent);
    return std::move(p.text);
}

record unpack_record(std::string_view packed) {
    unpacker u(packed);
    record r;
    r.state = u.number<std::uint8_t>();
    r.flags = u.number<std::uint16_t>();
    r.max_attempts = u.number<std::uint8_t>();
    for (double* each : {&r.token, &r.due, &r.keep, &r.created, &r.ended, &r.started}) *each = u.real();
    for (int* each : {&r.attempts, &r.crash_count, &r.max_crashes, &r.generation, &r.priority}) *each = u.integer();
    r.queue = u.words<std::uint16_t>();
    r.worker = u.words<std::uint32_t>();
    r.unique_key = u.words<std::uint16_t>();
    r.parent = u.words<std::uint16_t>();
    return r;
}

parcel unpack_parcel(std::string_view packed) {
    unpacker u(packed);
    parcel p;
    p.watch = u.number<std::uint32_t>();
    for (std::string* each : {&p.id, &p.record, &p.what}) *each = u.words<std::uint32_t>();
    return p;
}

std::string pack_details(const settlement& of) {
    const bool needs_time = of.how == settlement::kind::retry || of.how == settlement::kind::snooze;
    if (!needs_time && of.error.type.empty() && of.error.message.empty() && of.output.empty()) return {};
    packer p;
    p.number(static_cast<std::uint8_t>(of.when.how));
    p.real(static_cast<double>(microseconds(of.when)));
    for (const std::string* each : {&of.error.type, &of.error.message, &of.output}) p.words<std::uint32_t>(*each);
    return std::move(p.text);
}

} // namespace holdfast::redis
