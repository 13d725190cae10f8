#include "unit.hpp"

#include <algorithm>

namespace holdfast::redis {

namespace {

error changed_since(const std::string& call) {
    const bool lease = call == "settle" || call == "complete";
    return {lease ? errc::stale_lease : errc::duplicate,
            "redis: what " + call + " answered in this unit of work no longer holds; nothing of it was written",
            {}};
}

} // namespace

result<redis_unit*> redis_unit::from(unit_of_work* in, const core& of) {
    auto* const mine = dynamic_cast<redis_unit*>(in);
    if (mine != nullptr && &mine->core_ == &of) return mine;
    return fail(errc::invalid_argument, "redis: this unit of work is of another store");
}

result<void> redis_unit::check_open() const {
    if (!ended_) return {};
    return fail(errc::invalid_argument, "redis: this unit of work has ended; begin() another");
}

arguments redis_unit::all_steps(bool commits) const {
    arguments all;
    all.add(commits);
    for (const step& each : steps_) {
        all.add(each.name).add(each.with.values.size()).add(each.answer);
        all.values.insert(all.values.end(), each.with.values.begin(), each.with.values.end());
    }
    return all;
}

task<result<reply>> redis_unit::add(std::string name, arguments with) {
    if (auto ok = check_open(); !ok) co_return std::unexpected(ok.error());
    steps_.push_back({std::move(name), std::move(with), {}});
    auto trying = core_.run(script::unit, all_steps(false), access::read);
    auto tried = co_await std::move(trying);
    if (tried && tried->what == reply::kind::list && tried->items.size() == 2) {
        steps_.back().answer = std::move(tried->items[0].text);
        co_return std::move(tried->items[1]);
    }
    steps_.pop_back();
    if (!tried) co_return std::unexpected(tried.error());
    co_return std::unexpected(changed_since(tried->text));
}

task<result<void>> redis_unit::commit() {
    if (auto ok = check_open(); !ok) co_return ok;
    ended_ = true;
    if (steps_.empty()) co_return result<void>();
    auto writing = core_.run(script::unit, all_steps(true), access::write);
    const auto written = co_await std::move(writing);
    if (written && written->what == reply::kind::integer) co_return result<void>();
    if (written) co_return std::unexpected(changed_since(written->text));
    ended_ = written.error().code != errc::unavailable; // nothing was sent: it may be tried again
    co_return std::unexpected(written.error());
}

task<result<void>> redis_unit::rollback() {
    if (auto ok = check_open(); !ok) co_return ok;
    ended_ = true;
    steps_.clear();
    co_return result<void>();
}

} // namespace holdfast::redis
