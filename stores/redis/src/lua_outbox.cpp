// The outbox and the inbox.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// A message of a key is in mr or mf while it heads its line; one without a key always is, until it is sent or set aside.
const std::string_view outbox_rules = R"lua(
local fields = {'pos', 'key', 'tok', 'till', 'due', 'att', 'aside'}
local function load(id)
  local v = call('HMGET', P .. 'm:' .. id, unpack(fields))
  if not v[1] then return nil end
  return {id = id, pos = tonumber(v[1]), key = v[2], tok = v[3], till = tonumber(v[4]), due = tonumber(v[5]),
          att = tonumber(v[6]), aside = v[7]}
end
local function change(id, ...) call('HSET', P .. 'm:' .. id, ...) end
local function member(m) return string.format('%016.0f', m.pos) .. m.id end
local function unplace(m)
  if call('ZREM', P .. 'mr', member(m)) == 0 then call('ZREM', P .. 'mf', member(m)) end
end
local function place(m)
  local from = math.max(m.due, m.till)
  if from <= now then call('ZADD', P .. 'mr', 0, member(m))
  else call('ZADD', P .. 'mf', text(from), member(m)) end
end
-- The head of a key's line may have changed.
local function choose_head(key)
  local old = call('HGET', P .. 'mh', key)
  local head = call('ZRANGE', P .. 'ml:' .. key, 0, 0)[1]
  if old == head then return end
  local was = old and load(old)
  if was then unplace(was) end
  if not head then call('HDEL', P .. 'mh', key) return end
  call('HSET', P .. 'mh', key, head)
  place(load(head))
end
local function join_line(m)
  if m.key == '' then return place(m) end
  call('ZADD', P .. 'ml:' .. m.key, text(m.pos), m.id)
  choose_head(m.key)
end
-- While its record is still there.
local function leave_line(m)
  if m.key == '' then return unplace(m) end
  call('ZREM', P .. 'ml:' .. m.key, m.id)
  choose_head(m.key)
end
local function all_of(id)
  local v = call('HMGET', P .. 'm:' .. id, 'pos', 'att', 'topic', 'key', 'type', 'ver', 'ct', 'body', 'ex', 'err', 'tok')
  v[#v + 1] = id
  return v
end
local function unsent(by) call('HINCRBY', KEYS[1], 'unsent', by) end
)lua";

// Per message: id, topic, key, type, version, content type, body, headers.
const std::string_view append = R"lua(
local function append()
  local added = 0
  while at < stop do
    local id, topic, key, kind, version, content, body, extra = arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()
    if call('EXISTS', P .. 'm:' .. id) == 0 then
      local m = {id = id, key = key, pos = call('HINCRBY', KEYS[1], 'position', 1), due = now, till = 0}
      change(id, 'pos', text(m.pos), 'topic', topic, 'key', key, 'type', kind, 'ver', version, 'ct', content,
             'body', body, 'ex', extra, 'att', 0, 'err', '', 'tok', 0, 'till', 0, 'due', text(now))
      join_line(m)
      added = added + 1
    end
  end
  unsent(added)
  return added
end
)lua";

// Limit, lease, relay.
const std::string_view lease_batch = R"lua(
local limit, till, relay = num(), later(num()), arg()
for _, m in ipairs(call('ZRANGEBYSCORE', P .. 'mf', '-inf', text(now), 'LIMIT', 0, limit + 1000)) do
  call('ZREM', P .. 'mf', m)
  call('ZADD', P .. 'mr', 0, m)
end
local chosen = {}
for _, m in ipairs(call('ZRANGE', P .. 'mr', 0, limit - 1)) do
  chosen[#chosen + 1] = load(string.sub(m, 17))
  chosen[#chosen].head = true
end
for i = 1, #chosen do
  local key = chosen[i].key
  local room = limit - #chosen
  if room > 0 and key ~= '' then
    for _, id in ipairs(call('ZRANGE', P .. 'ml:' .. key, 1, room)) do
      local m = load(id)
      if math.max(m.due, m.till) > now then break end
      chosen[#chosen + 1] = m
    end
  end
end
if #chosen == 0 then return {} end
table.sort(chosen, function(a, b) return a.pos < b.pos end)
local token = next_token()
local leased = {}
for i, m in ipairs(chosen) do
  m.till = till
  change(m.id, 'tok', token, 'till', text(till), 'relay', relay)
  if m.head then
    call('ZREM', P .. 'mr', member(m))
    call('ZADD', P .. 'mf', text(till), member(m))
  end
  leased[i] = all_of(m.id)
end
return leased
)lua";

// Per message: id, token.
const std::string_view delivered = R"lua(
local answers = {}
while at < #ARGV do
  local id, token = arg(), arg()
  local m = load(id)
  local mine = m and not m.aside and m.tok == token
  if mine then
    leave_line(m)
    call('UNLINK', P .. 'm:' .. id)
    unsent(-1)
  end
  answers[#answers + 1] = mine and 0 or (m and 1 or 2)
end
return answers
)lua";

// Per message: id, token, why, retry after, set aside.
const std::string_view message_failed = R"lua(
local answers = {}
while at < #ARGV do
  local id, token, why, due, aside = arg(), arg(), arg(), later(math.max(0, num())), arg()
  local m = load(id)
  local mine = m and not m.aside and m.tok == token
  if mine then
    change(id, 'att', m.att + 1, 'err', why, 'tok', 0, 'till', 0, 'due', text(due))
    m.till, m.due = 0, due
    if aside == '1' then
      leave_line(m)
      change(id, 'aside', 1)
      call('ZADD', P .. 'ma', text(m.pos), id)
      unsent(-1)
    elseif m.key == '' or call('HGET', P .. 'mh', m.key) == id then
      unplace(m)
      place(m)
    end
  end
  answers[#answers + 1] = mine and 0 or (m and 1 or 2)
end
return answers
)lua";

// Limit, position.
const std::string_view set_aside = R"lua(
local limit, after = arg(), arg()
local found = {}
for i, id in ipairs(call('ZRANGEBYSCORE', P .. 'ma', '(' .. after, '+inf', 'LIMIT', 0, limit)) do found[i] = all_of(id) end
return found
)lua";

// Ids. Gives how many.
const std::string_view send_again = R"lua(
local found = 0
while at < #ARGV do
  local m = load(arg())
  if m and m.aside then
    call('ZREM', P .. 'ma', m.id)
    call('HDEL', P .. 'm:' .. m.id, 'aside')
    m.due, m.till = now, 0
    change(m.id, 'att', 0, 'due', text(now))
    join_line(m)
    unsent(1)
    found = found + 1
  end
end
return found
)lua";

// Ids. Gives how many.
const std::string_view discard = R"lua(
local found = 0
while at < #ARGV do
  local id = arg()
  if call('HGET', P .. 'm:' .. id, 'aside') then
    call('ZREM', P .. 'ma', id)
    call('UNLINK', P .. 'm:' .. id)
    found = found + 1
  end
end
return found
)lua";

const std::string_view unsent = R"lua(
return tonumber(call('HGET', KEYS[1], 'unsent') or 0)
)lua";

// Consumer, id, time. 1: the first.
const std::string_view receive = R"lua(
local function receive() return first_time(P .. 'in:' .. arg() .. arg(), num()) end
)lua";

// Consumer, ids. For each 1: it was.
const std::string_view received = R"lua(
local key = P .. 'in:' .. arg()
local answers = {}
while at < #ARGV do
  local till = call('GET', key .. arg())
  answers[#answers + 1] = till and tonumber(till) > now and 1 or 0
end
return answers
)lua";

} // namespace holdfast::redis::lua
