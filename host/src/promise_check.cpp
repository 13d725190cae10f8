#include "promise_check.hpp"

#include <holdfast/host.hpp>

#include "configuration.hpp"

namespace holdfast {

namespace {

template <class Capabilities>
std::string begin_of(const Capabilities& c) {
    return "survives " + std::string(to_text(c.writes_survive)) +
           (c.shared ? ", shared by processes" : ", for one process");
}

template <class Capabilities>
std::optional<std::string> broken_by_any(const promises& asked, const Capabilities& has) {
    if (asked.writes_survive > has.writes_survive)
        return "writes_survive = \"" + detail::survives_key(asked.writes_survive) + "\"";
    if (asked.shared && !has.shared) return "shared = true";
    return std::nullopt;
}

} // namespace

std::string describe(const store_capabilities& c) {
    std::string text = begin_of(c);
    text += c.units_of_work ? ", units of work" : ", no units of work";
    text += c.joins_transactions ? ", joins transactions" : ", joins no transactions";
    return c.loses.empty() ? text : text + "; loses " + c.loses;
}

std::string describe(const transport_capabilities& c) {
    return c.loses.empty() ? begin_of(c) : begin_of(c) + "; loses " + c.loses;
}

namespace detail {

std::optional<std::string> first_broken(const promises& asked, const transport_capabilities& has) {
    return broken_by_any(asked, has);
}

std::optional<std::string> first_broken(const promises& asked, const store_capabilities& has, facet of) {
    if (auto broken = broken_by_any(asked, has)) return broken;
    if (of == facet::locks) return std::nullopt; // no call of theirs takes a unit of work
    if (asked.units_of_work && !has.units_of_work) return "units_of_work = true";
    if (asked.joins_transactions && !has.joins_transactions) return "joins_transactions = true";
    return std::nullopt;
}

std::string facets_of(store& s) {
    std::string text;
    for (const facet each : all_facets)
        if (offers(s, each)) text += (text.empty() ? "" : ", ") + std::string(to_text(each));
    return text.empty() ? "nothing" : text;
}

} // namespace detail
} // namespace holdfast
