// Locks and idempotency.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// Resource, time. Gives the token, or nothing.
const std::string_view lock_acquire = R"lua(
local key, till = P .. 'k:' .. arg(), later(num())
local held = call('HGET', key, 'till')
if held and tonumber(held) > now then return false end
local token = next_token()
call('HSET', key, 'tok', token, 'till', text(till))
forget_at(key, till)
return token
)lua";

// Resource, token, time. 1: held on.
const std::string_view lock_renew = R"lua(
local key, token, till = P .. 'k:' .. arg(), arg(), later(num())
local v = call('HMGET', key, 'tok', 'till')
if v[1] ~= token or tonumber(v[2]) <= now then return 0 end
call('HSET', key, 'till', text(till))
forget_at(key, till)
return 1
)lua";

// Resource, token.
const std::string_view lock_release = R"lua(
local key = P .. 'k:' .. arg()
if call('HGET', key, 'tok') ~= arg() then return 0 end
return call('DEL', key)
)lua";

// For locks on a majority. Resource, name of a promise (it starts with ?), time. Gives the token that this server
// would give; or 1 when it is promised to somebody else, 0 when somebody else has it.
const std::string_view lock_promise = R"lua(
local key, name, till = P .. 'k:' .. arg(), arg(), later(num())
local v = call('HMGET', key, 'tok', 'till')
if v[1] and tonumber(v[2]) > now then return string.sub(v[1], 1, 1) == '?' and 1 or 0 end
call('HSET', key, 'tok', name, 'till', text(till))
forget_at(key, till)
return next_token()
)lua";

// Resource, name of the promise, token, time. 1: held.
const std::string_view lock_confirm = R"lua(
local key, name, token, till = P .. 'k:' .. arg(), arg(), arg(), later(num())
local v = call('HMGET', key, 'tok', 'till')
if v[1] ~= name or tonumber(v[2]) <= now then return 0 end
local last = tonumber(call('HGET', KEYS[1], 'token')) or 0
if last < tonumber(token) then call('HSET', KEYS[1], 'token', token) end
call('HSET', key, 'tok', token, 'till', text(till))
forget_at(key, till)
return 1
)lua";

// Key, time. 1: the first.
const std::string_view key_claim = R"lua(
local function key_claim() return first_time(P .. 'd:' .. arg(), num()) end
)lua";

// Key, fingerprint, lease, time to keep. Gives what, then: 0 started: token, taken over; 1 in progress: microseconds;
// 2 completed: payload; 3 mismatch.
const std::string_view key_begin = R"lua(
local key, mark, till, keep = P .. 'i:' .. arg(), arg(), later(num()), later(num())
local v = call('HMGET', key, 'mark', 'till', 'exp', 'done')
local there = v[1] and tonumber(v[3]) > now
if there and v[1] ~= mark then return {3} end
if there and v[4] then
  local p = call('HMGET', key, 'type', 'ver', 'ct', 'body')
  return {2, p[1], p[2], p[3], p[4]}
end
if there and tonumber(v[2]) > now then return {1, tonumber(v[2]) - now} end
if not there then call('DEL', key) end
local token = next_token()
keep = math.max(keep, till)
call('HSET', key, 'mark', mark, 'tok', token, 'till', text(till), 'exp', text(keep))
forget_at(key, keep)
return {0, token, there and 1 or 0}
)lua";

// Key, token, type, version, content type, body, time to keep. 1: done.
const std::string_view key_complete = R"lua(
local function key_complete()
  local key, token = P .. 'i:' .. arg(), arg()
  local kind, version, content, body, keep = arg(), arg(), arg(), arg(), later(num())
  local v = call('HMGET', key, 'tok', 'done', 'exp')
  if v[1] ~= token or tonumber(v[3]) <= now then return 0 end
  if v[2] then return 1 end
  write(function()
    call('HSET', key, 'done', 1, 'type', kind, 'ver', version, 'ct', content, 'body', body, 'exp', text(keep))
    forget_at(key, keep)
  end)
  return 1
end
)lua";

// Key, token. 1: forgotten.
const std::string_view key_abandon = R"lua(
local key, token = P .. 'i:' .. arg(), arg()
local v = call('HMGET', key, 'tok', 'done', 'exp')
if v[1] ~= token or v[2] or tonumber(v[3]) <= now then return 0 end
return call('DEL', key)
)lua";

// Key, token, lease. 1: held on.
const std::string_view key_renew = R"lua(
local key, token, till = P .. 'i:' .. arg(), arg(), later(num())
local v = call('HMGET', key, 'tok', 'done', 'exp')
if v[1] ~= token or v[2] or tonumber(v[3]) <= now then return 0 end
local keep = math.max(till, tonumber(v[3]))
call('HSET', key, 'till', text(till), 'exp', text(keep))
forget_at(key, keep)
return 1
)lua";

} // namespace holdfast::redis::lua
