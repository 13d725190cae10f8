// Publishing, receiving, settling.
#include "scripts.hpp"

namespace holdfast::events_redis::lua {

// Limit of open messages; per message: id, topic, key, what. Gives nothing, or the name of a subscription that is full and
// how many it has; then nothing was published.
const std::string_view publish = R"lua(
local most = num()
local new, wanted_by, seen, open_in = {}, {}, {}, {}
while at < stop do
  local m = {id = arg(), topic = arg(), key = arg(), what = arg()}
  if not seen[m.id] and call('HEXISTS', P .. 'i', m.id) == 0 then
    seen[m.id] = true
    new[#new + 1] = m
    wanted_by[m.topic] = wanted_by[m.topic] or call('SMEMBERS', P .. 't:' .. m.topic)
  end
end
if most > 0 then
  for _, subs in pairs(wanted_by) do
    for _, sub in ipairs(subs) do
      open_in[sub] = open_in[sub] or tonumber(call('HGET', P .. 'c:' .. sub, 'open') or 0)
      if open_in[sub] >= most then return {sub, open_in[sub]} end
    end
  end
end
local woken = {}
for _, m in ipairs(new) do
  local pos = call('HINCRBY', KEYS[1], 'position', 1)
  call('XADD', P .. 's', entry_id(pos), 'id', m.id, 'topic', m.topic, 'key', m.key, 'what', m.what, 'at', text(now))
  call('HSET', P .. 'i', m.id, text(pos))
  for _, sub in ipairs(wanted_by[m.topic]) do
    open(sub, pos, m.key, 1)
    woken[sub] = true
  end
end
for sub in pairs(woken) do hint(sub) end
return {}
)lua";

// Name, limit, lease, receiver. Gives nothing when there is no such subscription.
const std::string_view receive = R"lua(
local sub, limit, till, receiver = arg(), num(), later(num()), arg()
if not known(sub) then return false end
if call('HEXISTS', P .. 'c:' .. sub, 'fill') == 1 then return {} end
wake(sub, limit + 1000)
local front = {}
for i, pos in ipairs(call('ZRANGE', P .. 'r:' .. sub, 0, limit - 1)) do front[i] = tonumber(pos) end
local given, ids = {}, {}
local token
while #given < limit and #front > 0 do
  local best = 1
  for i = 2, #front do if front[i] < front[best] then best = i end end
  local pos = front[best]
  local e = load(sub, pos)
  front[best] = front[#front]
  front[#front] = nil
  if e.key ~= '' then
    local behind = next_in_line(sub, e.key, line_member(e.key, pos))
    if behind and is_free(load(sub, behind)) then front[#front + 1] = behind end
  end
  token = token or next_token()
  stop_waiting(sub, pos)
  if e.till > 0 then e.cra = e.cra + 1 end
  e.tok, e.till = tonumber(token), till
  save(sub, pos, e)
  call('ZADD', P .. 'f:' .. sub, text(till), text(pos))
  local m = message(pos)
  given[#given + 1] = {text(pos), token, e.red, e.cra, e.cal, e.gen, m.id, m.topic, m.key, m.what}
  ids[#ids + 1] = entry_id(pos)
end
for i = 1, #ids, 500 do
  local claim = {'XCLAIM', P .. 's', sub, receiver, 0, unpack(ids, i, math.min(i + 499, #ids))}
  claim[#claim + 1] = 'FORCE'
  claim[#claim + 1] = 'JUSTID'
  call(unpack(claim))
end
return given
)lua";

// Lease; per message: position, name, token.
const std::string_view renew = R"lua(
local till = later(num())
local answers = {}
while at < stop do
  local pos, sub, token = num(), arg(), num()
  local e = load(sub, pos)
  local mine = e and e.is == 0 and e.till > 0 and e.tok == token
  if mine then
    stop_waiting(sub, pos)
    e.till = till
    save(sub, pos, e)
    call('ZADD', P .. 'f:' .. sub, text(math.max(e.due, till)), text(pos))
  end
  answers[#answers + 1] = mine and 0 or (e and 1 or 2)
end
return answers
)lua";

// Per message: position, name, token, how, after, calls, error type, message, stack.
const std::string_view settle = R"lua(
local answers, woken, ended = {}, {}, {}
local function bury(sub, pos, e, kind, words, stack)
  e.death = call('HINCRBY', KEYS[1], 'death', 1)
  call('ZADD', P .. 'x', e.death, string.format('%016.0f', pos) .. sub)
  call('ZADD', P .. 'x:' .. sub, e.death, text(pos))
  call('HSET', P .. 'g:' .. sub, text(pos), cmsgpack.pack({now, kind, words, stack}))
  count(sub, 'dead', 1)
end
while at < stop do
  local pos, sub, token, how, after, calls, kind, words, stack =
    num(), arg(), num(), num(), num(), num(), arg(), arg(), arg()
  local e = load(sub, pos)
  local answer = 0
  if not e then answer = 2
  elseif token > 0 and e.sby == token then answer = 0
  elseif e.is ~= 0 or e.till == 0 or e.tok ~= token then answer = 1
  else
    e.sby = token
    if how ~= 2 then e.cal = e.cal + calls end
    local ready
    if how == 1 or how == 2 then
      if how == 1 then e.red = e.red + 1 end
      stop_waiting(sub, pos)
      e.till, e.due = 0, later(math.max(0, after))
      ready = wait_or_get_ready(sub, pos, e)
    else
      ready = close(sub, pos, e, how == 3 and 2 or 1)
      if how == 3 then bury(sub, pos, e, kind, words, stack)
      else count(sub, how == 0 and 'acknowledged' or 'discarded', 1) end
    end
    save(sub, pos, e)
    if ready then woken[sub] = true end
    ended[sub] = ended[sub] or {}
    table.insert(ended[sub], entry_id(pos))
  end
  answers[#answers + 1] = answer
end
for sub, ids in pairs(ended) do
  for i = 1, #ids, 500 do call('XACK', P .. 's', sub, unpack(ids, i, math.min(i + 499, #ids))) end
end
for sub in pairs(woken) do hint(sub) end
return answers
)lua";

// Name. Gives nothing when there is no such subscription; else microseconds, or -1 when nothing is open.
const std::string_view next_due = R"lua(
local sub = arg()
if not known(sub) then return false end
if tonumber(call('HGET', P .. 'c:' .. sub, 'open') or 0) == 0 then return -1 end
local first = call('ZRANGE', P .. 'f:' .. sub, 0, 0, 'WITHSCORES')[2]
if not first or call('EXISTS', P .. 'r:' .. sub) == 1 then return 0 end
return math.max(0, tonumber(first) - now)
)lua";

} // namespace holdfast::events_redis::lua
