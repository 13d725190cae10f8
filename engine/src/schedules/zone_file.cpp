#include "zone_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "zone_rule.hpp"

namespace holdfast {

namespace {

using namespace std::chrono;

struct transition {
    sys_seconds at;
    seconds offset; // from then on
};

class listed_zone final : public time_zone {
public:
    listed_zone(seconds before, std::vector<transition> listed, std::optional<zone_rule> afterwards)
        : before_(before), listed_(std::move(listed)), afterwards_(afterwards) {}

    zone_period period_at(sys_seconds at) const noexcept override {
        const auto next = std::ranges::upper_bound(listed_, at, {}, &transition::at);
        const sys_seconds begin = next == listed_.begin() ? sys_seconds::min() : std::prev(next)->at;
        if (next == listed_.end() && afterwards_) {
            zone_period found = afterwards_->period_at(at);
            found.begin = std::max(found.begin, begin);
            return found;
        }
        return {.begin = begin,
                .end = next == listed_.end() ? sys_seconds::max() : next->at,
                .offset = next == listed_.begin() ? before_ : std::prev(next)->offset};
    }

private:
    seconds before_;
    std::vector<transition> listed_;
    std::optional<zone_rule> afterwards_;
};

// Reads big-endian numbers; past the end it gives zeros and is no longer good().
class byte_reader {
public:
    explicit byte_reader(std::string_view bytes) noexcept : left_(bytes) {}
    std::int64_t number(std::size_t size) noexcept {
        std::uint64_t value = 0;
        const std::string_view from = take(size);
        for (const char c : from) value = (value << 8) | static_cast<unsigned char>(c);
        if (size == 4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
        return static_cast<std::int64_t>(value);
    }
    std::string_view take(std::size_t size) noexcept {
        if (size > left_.size()) {
            good_ = false;
            left_ = {};
            return {};
        }
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    std::string_view rest() const noexcept { return left_; }
    bool good() const noexcept { return good_; }

private:
    std::string_view left_;
    bool good_ = true;
};

struct header {
    char version = 0;
    std::size_t in_utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0;

    std::size_t body(std::size_t time_size) const noexcept {
        return times * time_size + times + types * 6 + letters + leaps * (time_size + 4) + standard + in_utc;
    }
};

std::optional<header> read_header(byte_reader& from) {
    header h;
    if (from.take(4) != "TZif") return std::nullopt;
    const std::string_view version = from.take(16);
    if (!from.good()) return std::nullopt;
    h.version = version.front();
    for (std::size_t* each : {&h.in_utc, &h.standard, &h.leaps, &h.times, &h.types, &h.letters})
        *each = static_cast<std::size_t>(from.number(4) & 0xffffffff);
    if (!from.good()) return std::nullopt;
    return h;
}

std::unexpected<error> broken(const char* why) {
    return fail(errc::invalid_argument, why);
}

} // namespace

result<std::unique_ptr<time_zone>> read_zone_file(std::string_view bytes) {
    byte_reader from(bytes);
    const auto old = read_header(from);
    if (!old) return broken("it is no TZif file");
    if (old->version < '2') return broken("it is a TZif file of version 1, which has no times after 2037");
    from.take(old->body(4));
    const auto h = read_header(from);
    if (!h) return broken("it is a TZif file that ends too early");
    if (h->types == 0 || h->body(8) > from.rest().size()) return broken("it is a TZif file that ends too early");

    std::vector<transition> listed(h->times);
    for (transition& each : listed) each.at = sys_seconds(seconds(from.number(8)));
    const std::string_view kinds = from.take(h->times);
    std::vector<seconds> offsets(h->types);
    for (seconds& each : offsets) {
        each = seconds(from.number(4));
        from.take(2); // summer time or not, and its name
    }
    from.take(h->letters + h->leaps * 12 + h->standard + h->in_utc);
    for (std::size_t i = 0; i < listed.size(); ++i) {
        const auto kind = static_cast<unsigned char>(kinds[i]);
        if (kind >= offsets.size()) return broken("it is a TZif file with a kind of time that it does not define");
        listed[i].offset = offsets[kind];
    }
    if (!std::ranges::is_sorted(listed, {}, &transition::at)) return broken("it is a TZif file out of order");

    std::string_view footer = from.rest();
    std::optional<zone_rule> afterwards;
    if (footer.starts_with('\n')) {
        footer.remove_prefix(1);
        footer = footer.substr(0, footer.find('\n'));
        if (!footer.empty()) {
            afterwards = zone_rule::parse(footer);
            if (!afterwards) return broken("it is a TZif file whose last line is no rule");
        }
    }
    return std::make_unique<listed_zone>(offsets.front(), std::move(listed), afterwards);
}

} // namespace holdfast
