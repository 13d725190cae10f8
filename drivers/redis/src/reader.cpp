#include <holdfast/redis/reader.hpp>

#include <charconv>

namespace holdfast::redis {

namespace {

[[noreturn]] void surprised() {
    throw failed({errc::internal, "redis: a script answered in a form that this plugin does not know", {}});
}

} // namespace

std::int64_t to_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) surprised();
    return value;
}

reader::reader(reply& list) : list_(list) {
    if (list.what != reply::kind::list) surprised();
}
reply& reader::next() {
    if (!more()) surprised();
    return list_.items[at_++];
}
std::int64_t reader::number() {
    const reply& r = next();
    return r.what == reply::kind::integer ? r.number : to_number(r.text);
}
identifier reader::id() {
    const auto id = parse_identifier(next().text);
    if (!id) surprised();
    return *id;
}
payload reader::what() {
    payload p;
    p.type = text();
    p.version = integer();
    p.content_type = text();
    p.body = text();
    return p;
}

std::vector<write_answer> decode_answers(reply& from) {
    std::vector<write_answer> answers;
    for (reader r(from); r.more();) answers.push_back(static_cast<write_answer>(r.integer()));
    return answers;
}

} // namespace holdfast::redis
