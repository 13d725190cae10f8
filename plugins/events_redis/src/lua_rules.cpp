// What one subscription knows of each message, and which of them may be given out.
#include "scripts.hpp"

namespace holdfast::events_redis::lua {

// An entry is open, settled or dead (is = 0, 1, 2). An open one is in r when it is free and the first of its key, in f
// when it is not free.
const std::string_view rules = R"lua(
local function entry_id(pos) return text(pos) .. '-0' end
local function load(sub, pos)
  local packed = call('HGET', P .. 'e:' .. sub, text(pos))
  if not packed then return nil end
  local v = cmsgpack.unpack(packed)
  return {is = v[1], tok = v[2], sby = v[3], till = v[4], due = v[5], red = v[6], cra = v[7], cal = v[8], gen = v[9],
          death = v[10], key = v[11]}
end
local function save(sub, pos, e)
  call('HSET', P .. 'e:' .. sub, text(pos), cmsgpack.pack({e.is, e.tok, e.sby, e.till, e.due, e.red, e.cra, e.cal, e.gen,
       e.death, e.key}))
end
local function count(sub, what, by) call('HINCRBY', P .. 'c:' .. sub, what, by) end
local function message(pos)
  local found = call('XRANGE', P .. 's', entry_id(pos), entry_id(pos))[1]
  if not found then return nil end
  local v = found[2]
  return {id = v[2], topic = v[4], key = v[6], what = v[8], at = tonumber(v[10])}
end
local function is_free(e) return e.due <= now and e.till <= now end
local function line_prefix(key) return string.format('%04x', #key) .. key end
local function line_member(key, pos) return line_prefix(key) .. string.format('%016.0f', pos) end
-- The first open one of a key after a member of its line, or of all.
local function next_in_line(sub, key, after)
  local prefix = line_prefix(key)
  local found = call('ZRANGEBYLEX', P .. 'l:' .. sub, after and '(' .. after or '[' .. prefix, '[' .. prefix .. '\255',
                     'LIMIT', 0, 1)[1]
  return found and tonumber(string.sub(found, -16))
end
local function is_first(sub, pos, e) return e.key == '' or next_in_line(sub, e.key) == pos end
local function get_ready(sub, pos) call('ZADD', P .. 'r:' .. sub, text(pos), text(pos)) end
-- It has changed.
local function wait_or_get_ready(sub, pos, e)
  if not is_free(e) then call('ZADD', P .. 'f:' .. sub, text(math.max(e.due, e.till)), text(pos)) return false end
  if not is_first(sub, pos, e) then return false end
  get_ready(sub, pos)
  return true
end
-- It is about to change.
local function stop_waiting(sub, pos)
  if call('ZREM', P .. 'r:' .. sub, text(pos)) == 0 then call('ZREM', P .. 'f:' .. sub, text(pos)) end
end
-- What was waiting and need not any more.
local function wake(sub, most)
  for _, pos in ipairs(call('ZRANGEBYSCORE', P .. 'f:' .. sub, '-inf', text(now), 'LIMIT', 0, most)) do
    call('ZREM', P .. 'f:' .. sub, pos)
    wait_or_get_ready(sub, tonumber(pos), load(sub, pos))
  end
end
-- New, or once more with counts from 0.
local function open(sub, pos, key, generation, before)
  local e = {is = 0, tok = before and before.tok or 0, sby = before and before.sby or 0, till = 0, due = now, red = 0,
             cra = 0, cal = 0, gen = generation, death = 0, key = key}
  if key ~= '' then
    local first = next_in_line(sub, key)
    if first and pos < first then call('ZREM', P .. 'r:' .. sub, text(first)) end
    call('ZADD', P .. 'l:' .. sub, 0, line_member(key, pos))
  end
  save(sub, pos, e)
  count(sub, 'open', 1)
  wait_or_get_ready(sub, pos, e)
end
-- True: the next of its key may be given out.
local function close(sub, pos, e, to)
  stop_waiting(sub, pos)
  e.is, e.till = to, 0
  count(sub, 'open', -1)
  if e.key == '' then return false end
  call('ZREM', P .. 'l:' .. sub, line_member(e.key, pos))
  local first = next_in_line(sub, e.key)
  if not first or not is_free(load(sub, first)) then return false end
  get_ready(sub, first)
  return true
end
local function known(sub) return call('SISMEMBER', P .. 'subs', sub) == 1 end
)lua";

// Of messages that a subscription gave up on.
const std::string_view dead_rules = R"lua(
local function grave(sub, pos) return string.format('%016.0f', pos) .. sub end
local function find_dead(sub, id)
  local pos = tonumber(call('HGET', P .. 'i', id))
  local e = pos and load(sub, pos)
  if e and e.is == 2 then return pos, e end
end
local function unbury(sub, pos)
  call('ZREM', P .. 'x', grave(sub, pos))
  call('ZREM', P .. 'x:' .. sub, text(pos))
  call('HDEL', P .. 'g:' .. sub, text(pos))
  count(sub, 'dead', -1)
end
local function describe(sub, pos, e)
  local m = message(pos)
  local g = cmsgpack.unpack(call('HGET', P .. 'g:' .. sub, text(pos)))
  return {sub, text(pos), text(g[1]), e.red, e.cra, e.cal, e.gen, g[2], g[3], g[4], m.id, m.topic, m.key, m.what,
          text(e.death)}
end
)lua";

} // namespace holdfast::events_redis::lua
