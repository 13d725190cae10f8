// Subscriptions, dead letters, replays, sweeping.
#include "scripts.hpp"

namespace holdfast::events_redis::lua {

// Name, from the start, topics. Gives 1 when something of an earlier time is still to be opened, by `fill`.
const std::string_view subscribe = R"lua(
local sub, from_start = arg(), arg() == '1'
local wanted = {}
while at < stop do wanted[arg()] = true end
local new = call('SADD', P .. 'subs', sub) == 1
if new then
  redis.pcall('XGROUP', 'CREATE', P .. 's', sub, '$', 'MKSTREAM')
  if from_start then
    call('HSET', P .. 'c:' .. sub, 'fill', 0, 'to', tonumber(call('HGET', KEYS[1], 'position') or 0))
  end
end
for _, topic in ipairs(call('SMEMBERS', P .. 'w:' .. sub)) do
  if not wanted[topic] then
    call('SREM', P .. 'w:' .. sub, topic)
    call('SREM', P .. 't:' .. topic, sub)
  end
end
for topic in pairs(wanted) do
  call('SADD', P .. 'w:' .. sub, topic)
  call('SADD', P .. 't:' .. topic, sub)
end
return call('HEXISTS', P .. 'c:' .. sub, 'fill')
)lua";

// Name, how many messages to look at. Gives 1 when there are more. Nothing is given out until all are there, so that keys
// keep their order.
const std::string_view fill = R"lua(
local sub, most = arg(), arg()
local v = call('HMGET', P .. 'c:' .. sub, 'fill', 'to')
if not v[1] then return 0 end
local last = tonumber(v[1])
local found = call('XRANGE', P .. 's', entry_id(last + 1), entry_id(v[2]), 'COUNT', most)
for _, each in ipairs(found) do
  last = tonumber(string.match(each[1], '^%d+'))
  if call('SISMEMBER', P .. 'w:' .. sub, each[2][4]) == 1 and not load(sub, last) then
    open(sub, last, each[2][6], 1)
  end
end
if #found == tonumber(most) then
  call('HSET', P .. 'c:' .. sub, 'fill', text(last))
  return 1
end
call('HDEL', P .. 'c:' .. sub, 'fill', 'to')
hint(sub)
return 0
)lua";

// Name. 1: it was there.
const std::string_view unsubscribe = R"lua(
local sub = arg()
if call('SREM', P .. 'subs', sub) == 0 then return 0 end
for _, topic in ipairs(call('SMEMBERS', P .. 'w:' .. sub)) do call('SREM', P .. 't:' .. topic, sub) end
for _, pos in ipairs(call('ZRANGE', P .. 'x:' .. sub, 0, -1)) do
  call('ZREM', P .. 'x', string.format('%016.0f', tonumber(pos)) .. sub)
end
redis.pcall('XGROUP', 'DESTROY', P .. 's', sub)
for _, kind in ipairs({'w:', 'e:', 'r:', 'f:', 'l:', 'c:', 'x:', 'g:'}) do call('UNLINK', P .. kind .. sub) end
return 1
)lua";

// Per subscription: name, topics, open, leased, dead, acknowledged, discarded.
const std::string_view subscriptions = R"lua(
local all = {}
for _, sub in ipairs(call('SMEMBERS', P .. 'subs')) do
  local leased = 0
  for _, pos in ipairs(call('ZRANGEBYSCORE', P .. 'f:' .. sub, '(' .. text(now), '+inf')) do
    if load(sub, pos).till > now then leased = leased + 1 end
  end
  local v = call('HMGET', P .. 'c:' .. sub, 'open', 'dead', 'acknowledged', 'discarded')
  all[#all + 1] = {sub, call('SMEMBERS', P .. 'w:' .. sub), v[1] or '0', leased, v[2] or '0', v[3] or '0', v[4] or '0'}
end
return all
)lua";

// Subscription or '', topic or '', number of a death, limit. The latest before that one.
const std::string_view dead_messages = R"lua(
local of, topic, before, limit = arg(), arg(), arg(), num()
local index = of == '' and P .. 'x' or P .. 'x:' .. of
local found = {}
while #found < limit do
  local some = call('ZREVRANGEBYSCORE', index, '(' .. before, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #some, 2 do
    local sub = of == '' and string.sub(some[i], 17) or of
    local pos = tonumber(of == '' and string.sub(some[i], 1, 16) or some[i])
    before = some[i + 1]
    local dead = describe(sub, pos, load(sub, pos))
    if #found < limit and (topic == '' or dead[12] == topic) then found[#found + 1] = dead end
  end
  if #some < 2 * limit then break end
end
return found
)lua";

// Name, id. Gives nothing when there is none.
const std::string_view dead_message = R"lua(
local sub, id = arg(), arg()
local pos, e = find_dead(sub, id)
if not pos then return false end
return describe(sub, pos, e)
)lua";

// Name, ids. Gives how many.
const std::string_view send_again = R"lua(
local sub, found = arg(), 0
while at < stop do
  local pos, e = find_dead(sub, arg())
  if pos then
    unbury(sub, pos)
    open(sub, pos, e.key, e.gen + 1, e)
    found = found + 1
  end
end
if found > 0 then hint(sub) end
return found
)lua";

// Name, ids. Gives how many.
const std::string_view discard = R"lua(
local sub, found = arg(), 0
while at < stop do
  local pos, e = find_dead(sub, arg())
  if pos then
    unbury(sub, pos)
    e.is = 1
    save(sub, pos, e)
    found = found + 1
  end
end
return found
)lua";

// Name, first position, last position or 0, time, how many messages to look at. Gives nothing when there is no such
// subscription; else how many were opened, where to go on, if anywhere, and the last position.
const std::string_view replay = R"lua(
local sub, from, to, since, most = arg(), num(), num(), num(), num()
if not known(sub) then return false end
if to == 0 then to = tonumber(call('HGET', KEYS[1], 'position') or 0) end
local number, last = 0, 0
local found = call('XRANGE', P .. 's', entry_id(from), entry_id(to), 'COUNT', most)
for _, each in ipairs(found) do
  last = tonumber(string.match(each[1], '^%d+'))
  local v = each[2]
  if tonumber(v[10]) >= since and call('SISMEMBER', P .. 'w:' .. sub, v[4]) == 1 then
    local e = load(sub, last)
    if not e or e.is ~= 0 then
      if e and e.is == 2 then unbury(sub, last) end
      open(sub, last, v[6], (e and e.gen or 1) + 1, e)
      number = number + 1
    end
  end
end
if number > 0 then hint(sub) end
return {number, #found == most and text(last + 1) or '0', text(to)}
)lua";

// How long to keep, limit. Goes on where the call before ended, so that what is needed for long is in nobody's way.
const std::string_view sweep = R"lua(
local oldest, limit = now - num(), num()
local subs = call('SMEMBERS', P .. 'subs')
local function is_needed(pos)
  for _, sub in ipairs(subs) do
    local e = load(sub, pos)
    if e and e.is ~= 1 then return true end
  end
  return false
end
local number, looked = 0, 0
local last = tonumber(call('HGET', KEYS[1], 'swept') or 0)
local ended = false
while not ended and number < limit and looked < limit + 1000 do
  local found = call('XRANGE', P .. 's', entry_id(last + 1), '+', 'COUNT', 100)
  ended = #found < 100
  for _, each in ipairs(found) do
    if number == limit then break end
    if tonumber(each[2][10]) >= oldest then ended = true break end
    last = tonumber(string.match(each[1], '^%d+'))
    looked = looked + 1
    if not is_needed(last) then
      call('XDEL', P .. 's', each[1])
      call('HDEL', P .. 'i', each[2][2])
      for _, sub in ipairs(subs) do call('HDEL', P .. 'e:' .. sub, text(last)) end
      number = number + 1
    end
  end
end
call('HSET', KEYS[1], 'swept', ended and 0 or text(last))
-- Who received long ago and has nothing any more.
for _, sub in ipairs(subs) do
  for _, v in ipairs(call('XINFO', 'CONSUMERS', P .. 's', sub)) do
    if v[4] == 0 and v[6] > 3600000 then call('XGROUP', 'DELCONSUMER', P .. 's', sub, v[2]) end
  end
end
return number
)lua";

} // namespace holdfast::events_redis::lua
