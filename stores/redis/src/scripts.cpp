#include "scripts.hpp"

#include <initializer_list>

namespace holdfast::redis {

namespace lua {

// Before every script of the store.
const std::string_view store_prelude = R"lua(
local function due_time(how, value)
  if how == 1 then return math.max(0, later(value)) end
  if how == 2 then return math.max(0, math.min(value, FAR)) end
  return now
end
-- At once, but for a unit of work: then at its end.
local function write(what) what() end
local function first_time(key, span)
  local till = call('GET', key)
  if till and tonumber(till) > now then return 0 end
  write(function()
    call('SET', key, text(later(span)))
    forget_at(key, later(span))
  end)
  return 1
end
)lua";

} // namespace lua

namespace {

// Several calls in one: whatever they need, each in a scope of its own where names are the same.
std::string unit_text() {
    std::string all(lua::prelude);
    for (const std::string_view part :
         {lua::store_prelude, lua::unit_rules, lua::job_form, lua::open_book, lua::job_books, lua::line_rules,
          lua::end_rules, lua::owner_rules, lua::enqueue, lua::settle, lua::key_claim, lua::key_complete, lua::receive})
        all += part;
    all += "local append_all\ndo\n";
    all.append(lua::outbox_rules).append(lua::append);
    all += "append_all = append\nend\n";
    return all.append(lua::unit);
}

} // namespace

namespace {

std::string script_text(script which) {
    const auto join = [](std::initializer_list<std::string_view> parts) {
        std::string all(lua::prelude);
        for (const std::string_view each : parts) all += each;
        return all;
    };
    const auto plain = [&](std::string_view body) { return join({lua::store_prelude, body}); };
    const auto owner = [&](std::string_view body) {
        return join({lua::store_prelude, lua::job_form, lua::job_books, lua::owner_rules, body});
    };
    const auto view = [&](std::string_view body) {
        return join({lua::store_prelude, lua::job_form, lua::open_book, lua::job_books, lua::view_rules, body});
    };
    const auto care = [&](std::string_view body) {
        return join(
            {lua::store_prelude, lua::job_form, lua::open_book, lua::job_books, lua::line_rules, lua::end_rules, body});
    };
    const auto message = [&](std::string_view body) { return join({lua::store_prelude, lua::outbox_rules, body}); };
    // Those that units of work need as well are functions.
    const auto whole = [](std::string_view function, const std::string& call) {
        return std::string(function).append("local given = " + call + "\nwrite_all()\nreturn given\n");
    };
    const auto simple = [](std::string_view function, const std::string& name) {
        return std::string(function).append("return " + name + "()\n");
    };
    switch (which) {
    case script::enqueue:
        return join({lua::job_form, lua::enqueue_plain, lua::store_prelude, lua::job_books, lua::line_rules,
                     whole(lua::enqueue, "enqueue()")});
    case script::claim: return join({lua::job_form, lua::claim});
    case script::unit: return unit_text();
    case script::started: return owner(lua::started);
    case script::heartbeat: return owner(lua::heartbeat);
    case script::settle:
        return join({lua::job_form, lua::open_book, lua::settle_plain, lua::store_prelude, lua::job_books,
                     lua::line_rules, lua::end_rules, lua::owner_rules, whole(lua::settle, "settle(answers)")});
    case script::progress: return owner(lua::progress);
    case script::recover_stale: return care(lua::recover_stale);
    case script::next_due: return plain(lua::next_due);
    case script::cancel: return care(lua::cancel);
    case script::requeue: return care(lua::requeue);
    case script::purge: return care(lua::purge);
    case script::discard_jobs: return care(lua::discard_jobs);
    case script::pause: return plain(lua::pause);
    case script::queues: return plain(lua::queues);
    case script::get: return view(lua::get);
    case script::list: return view(lua::list);
    case script::counts: return plain(lua::counts);
    case script::lock_acquire: return plain(lua::lock_acquire);
    case script::lock_renew: return plain(lua::lock_renew);
    case script::lock_release: return plain(lua::lock_release);
    case script::lock_promise: return plain(lua::lock_promise);
    case script::lock_confirm: return plain(lua::lock_confirm);
    case script::key_claim: return plain(simple(lua::key_claim, "key_claim"));
    case script::key_begin: return plain(lua::key_begin);
    case script::key_complete: return plain(simple(lua::key_complete, "key_complete"));
    case script::key_abandon: return plain(lua::key_abandon);
    case script::key_renew: return plain(lua::key_renew);
    case script::append: return message(simple(lua::append, "append"));
    case script::lease_batch: return message(lua::lease_batch);
    case script::delivered: return message(lua::delivered);
    case script::message_failed: return message(lua::message_failed);
    case script::set_aside: return message(lua::set_aside);
    case script::send_again: return message(lua::send_again);
    case script::discard: return message(lua::discard);
    case script::unsent: return plain(lua::unsent);
    case script::receive: return plain(simple(lua::receive, "receive"));
    case script::received: return plain(lua::received);
    }
    return {};
}

} // namespace

const script_library& store_scripts() {
    static const script_library library = [] {
        script_library made{.schema = 1, .kind = "store", .all = {}};
        for (std::size_t i = 0; i < script_count; ++i) made.all.push_back(script_text(static_cast<script>(i)));
        return made;
    }();
    return library;
}

} // namespace holdfast::redis
