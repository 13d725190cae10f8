#include "scripts.hpp"

namespace holdfast::redis {

namespace lua {

// KEYS[1]: meta. ARGV: schema version, a marker for a new store. Gives the store's marker.
const std::string_view prepare = R"lua(
local found = redis.call('HGET', KEYS[1], 'schema')
if found and tonumber(found) > tonumber(ARGV[1]) then return redis.error_reply('HFNEWER ' .. found) end
redis.call('HSETNX', KEYS[1], 'schema', ARGV[1])
redis.call('HSETNX', KEYS[1], 'marker', ARGV[2])
return redis.call('HGET', KEYS[1], 'marker')
)lua";

// KEYS[1]: meta. ARGV[1]: the marker, then what the script takes. Times are microseconds; numbers stay below 2^53.
// Tokens never fall behind the clock, so they grow even past a loss of what was written last.
const std::string_view prelude = R"lua(
local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
if call('HGET', KEYS[1], 'marker') ~= ARGV[1] then return redis.error_reply('HFERASED data') end
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local FAR = 9000000000000000
local at = 1
local function arg() at = at + 1; return ARGV[at] end
local function num() at = at + 1; return tonumber(ARGV[at]) end
local function text(n) return string.format('%.0f', n) end
local function later(span) return math.min(now + span, FAR) end
local function due_time()
  local how, value = num(), num()
  if how == 1 then return math.max(0, later(value)) end
  if how == 2 then return math.max(0, math.min(value, FAR)) end
  return now
end
local function newer(token) return math.max((tonumber(token) or 0) + 1, now) end
local function next_token()
  local token = text(newer(call('HGET', KEYS[1], 'token')))
  call('HSET', KEYS[1], 'token', token)
  return token
end
-- For memory alone: what counts is the time that is written in the value.
local function forget_at(key, time) call('PEXPIREAT', key, text(math.floor(time / 1000) + 1000)) end
local function first_time(key, span)
  local till = call('GET', key)
  if till and tonumber(till) > now then return 0 end
  call('SET', key, text(later(span)))
  forget_at(key, later(span))
  return 1
end
)lua";

} // namespace lua

std::string script_text(script which) {
    const auto with = [](std::string_view rules, std::string_view body) {
        return std::string(lua::prelude).append(rules).append(body);
    };
    const auto job = [&](std::string_view body) { return with(lua::job_rules, body); };
    const auto message = [&](std::string_view body) { return with(lua::outbox_rules, body); };
    switch (which) {
    case script::prepare: return std::string(lua::prepare);
    case script::enqueue: return job(lua::enqueue);
    case script::claim: return job(lua::claim);
    case script::started: return with({}, lua::started);
    case script::heartbeat: return with({}, lua::heartbeat);
    case script::settle: return job(lua::settle);
    case script::progress: return with({}, lua::progress);
    case script::recover_stale: return job(lua::recover_stale);
    case script::next_due: return with({}, lua::next_due);
    case script::cancel: return job(lua::cancel);
    case script::requeue: return job(lua::requeue);
    case script::purge: return job(lua::purge);
    case script::pause: return with({}, lua::pause);
    case script::queues: return with({}, lua::queues);
    case script::get: return with({}, lua::get);
    case script::list: return with({}, lua::list);
    case script::counts: return with({}, lua::counts);
    case script::lock_acquire: return with({}, lua::lock_acquire);
    case script::lock_renew: return with({}, lua::lock_renew);
    case script::lock_release: return with({}, lua::lock_release);
    case script::key_claim: return with({}, lua::key_claim);
    case script::key_begin: return with({}, lua::key_begin);
    case script::key_complete: return with({}, lua::key_complete);
    case script::key_abandon: return with({}, lua::key_abandon);
    case script::key_renew: return with({}, lua::key_renew);
    case script::append: return message(lua::append);
    case script::lease_batch: return message(lua::lease_batch);
    case script::delivered: return message(lua::delivered);
    case script::message_failed: return message(lua::message_failed);
    case script::set_aside: return message(lua::set_aside);
    case script::send_again: return message(lua::send_again);
    case script::discard: return message(lua::discard);
    case script::unsent: return with({}, lua::unsent);
    case script::receive: return with({}, lua::receive);
    }
    return {};
}

} // namespace holdfast::redis
