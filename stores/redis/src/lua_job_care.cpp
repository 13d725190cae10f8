// Jobs: what operators and the recovery loop do, and what is read.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// Limit, how long a note of a forgotten job stays. Gives requeued, failed, deleted, dead_letter.
const std::string_view recover_stale = R"lua(
local limit, keep_note = num(), num()
local done = {0, 0, 0, 0}
local function recover(j)
  if j.cxl == '1' then
    end_attempt(j, 'crashed', '', '')
    change(j.id, 'att', j.att - 1)
    finish(j, 7, 0)
    return 3
  end
  if j.rs ~= '1' and j.begun == '1' then
    end_attempt(j, 'crashed', 'crash', 'crash, restart not allowed')
    change(j.id, 'att', j.att - 1)
    finish(j, 5, 0)
    return 2
  end
  if j.rs == '1' then j.crash = j.crash + 1 end
  local too_often = j.crash > j.maxc
  end_attempt(j, 'crashed', too_often and 'crash' or '', too_often and 'crashed too often' or '')
  change(j.id, 'att', j.att - 1, 'crash', j.crash)
  if too_often then
    finish(j, 6, 0)
    return 4
  end
  j.st = 1
  change(j.id, 'st', 1)
  line_up(j)
  return 1
end
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'l', '-inf', text(now), 'LIMIT', 0, limit)) do
  local j = load(id)
  if j and j.st == 2 then
    local what = recover(j)
    done[what] = done[what] + 1
  else
    call('ZREM', P .. 'l', id)
  end
end
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'x', '-inf', text(now), 'LIMIT', 0, math.max(limit, 100))) do
  local j = load(id)
  if j then forget(j, keep_note) else call('ZREM', P .. 'x', id) end
end
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 't', '-inf', text(now), 'LIMIT', 0, 1000)) do
  call('ZREM', P .. 't', id)
end
write_counts()
return done
)lua";

// Ids. Answers are the numbers of cancel_answer.
const std::string_view cancel = R"lua(
local answers = {}
while at < #ARGV do
  local j = load(arg())
  local answer = 2
  if j and j.st >= 4 then
    answer = 3
  elseif j then
    change(j.id, 'cxl', 1)
    answer = j.st == 2 and 1 or 0
    if answer == 0 then
      step_out(j)
      finish(j, 7, 0)
    end
  end
  answers[#answers + 1] = answer
end
write_counts()
return answers
)lua";

// Ids. Gives how many.
const std::string_view requeue = R"lua(
local requeued = 0
local function rearm(parents)
  while #parents > 0 do
    for _, id in ipairs(call('SMEMBERS', P .. 'c:' .. table.remove(parents))) do
      local j = load(id)
      if j and j.cbp and j.st == 7 and key_is_free(j) then
        unfile(j)
        j.st, j.wfp = 0, '1'
        call('HDEL', P .. 'j:' .. id, 'cbp', 'end')
        change(id, 'st', 0, 'wfp', 1)
        open(j)
        line_up(j)
        if j.kids then parents[#parents + 1] = id end
      end
    end
  end
end
while at < #ARGV do
  local j = load(arg())
  if j and j.st >= 5 and key_is_free(j) then
    unfile(j)
    j.st, j.due, j.wfp = 1, now, false
    call('HDEL', P .. 'j:' .. j.id, 'cbp', 'wfp', 'end', 'cxl')
    change(j.id, 'st', 1, 'due', text(now), 'gen', j.gen + 1, 'att', 0, 'crash', 0)
    open(j)
    line_up(j)
    if j.kids then rearm({j.id}) end
    requeued = requeued + 1
  end
end
write_counts()
return requeued
)lua";

// State, age, limit, how long a note stays. Gives how many.
const std::string_view purge = R"lua(
local st, age, limit, keep_note = arg(), num(), num(), num()
local ids = call('ZRANGEBYSCORE', P .. 'e:' .. st, '-inf', text(math.max(0, now - age)), 'LIMIT', 0, limit)
local purged = 0
for _, id in ipairs(ids) do
  local j = load(id)
  if j then
    forget(j, keep_note)
    purged = purged + 1
  end
end
write_counts()
return purged
)lua";

// Queues. Microseconds, or -1: nothing is scheduled.
const std::string_view next_due = R"lua(
local first
while at < #ARGV do
  local q = arg()
  if call('SISMEMBER', P .. 'paused', q) == 0 then
    if call('ZCARD', P .. 'p:' .. q) > 0 then first = now end
    for _, line in ipairs({'s:', 'r:'}) do
      local head = call('ZRANGE', P .. line .. q, 0, 0, 'WITHSCORES')
      local due = tonumber(head[2])
      if due and (not first or due < first) then first = due end
    end
  end
end
return first and math.max(0, first - now) or -1
)lua";

// Queue, 1 to pause and 0 to resume.
const std::string_view pause = R"lua(
local q = arg()
return call(arg() == '1' and 'SADD' or 'SREM', P .. 'paused', q)
)lua";

// Name and paused, per queue.
const std::string_view queues = R"lua(
local found = {}
for _, q in ipairs(call('SUNION', P .. 'qs', P .. 'paused')) do
  found[#found + 1] = q
  found[#found + 1] = call('SISMEMBER', P .. 'paused', q)
end
return found
)lua";

// Id. Gives state as seen, fields, attempts; or 1 for one that was there, 0 for one that never was.
const std::string_view get = R"lua(
local id = arg()
local v = call('HMGET', P .. 'j:' .. id, 'st', 'wfp', 'due')
if not v[1] then
  local note = call('ZSCORE', P .. 't', id)
  return (note and tonumber(note) > now) and 1 or 0
end
local st = tonumber(v[1])
if st == 4 then
  local till = call('ZSCORE', P .. 'x', id)
  if till and tonumber(till) <= now then return 1 end
end
if (st == 0 or st == 3) and not v[2] and tonumber(v[3]) <= now then st = 1 end
local attempts = {}
for i, packed in ipairs(call('LRANGE', P .. 'h:' .. id, 0, -1)) do attempts[i] = cmsgpack.unpack(packed) end
return {st, call('HGETALL', P .. 'j:' .. id), attempts}
)lua";

// State or empty, has queue, queue, has type, type, limit, id to start below or empty. Gives the id that the search
// came to, empty at its end, and per job: state as seen, fields.
const std::string_view list = R"lua(
local state, by_queue, queue, by_type, kind, limit, below = arg(), arg(), arg(), arg(), arg(), num(), arg()
local wanted = tonumber(state)
local books = {'o', 'f:4', 'f:5', 'f:6', 'f:7', 'f:8'}
if wanted then books = {wanted < 4 and 'o' or 'f:' .. state} end
local look = math.max(limit, 500)
local from = below == '' and '+' or '(' .. below
local ids = {}
for _, book in ipairs(books) do
  for _, id in ipairs(call('ZREVRANGEBYLEX', P .. book, from, '-', 'LIMIT', 0, look)) do ids[#ids + 1] = id end
end
table.sort(ids, function(a, b) return a > b end)
local found = {''}
for i, id in ipairs(ids) do
  local v = call('HMGET', P .. 'j:' .. id, 'st', 'wfp', 'due', 'q', 'type')
  local st = tonumber(v[1])
  if (st == 0 or st == 3) and not v[2] and tonumber(v[3]) <= now then st = 1 end
  if st and (not wanted or st == wanted) and (by_queue == '0' or v[4] == queue) and (by_type == '0' or v[5] == kind) then
    found[#found + 1] = st
    found[#found + 1] = call('HGETALL', P .. 'j:' .. id)
  end
  if #found > 2 * limit or i == look then
    found[1] = id
    return found
  end
end
return found
)lua";

// Queue, state, number.
const std::string_view counts = R"lua(
local found = {}
local function add(q, st, n)
  if n <= 0 then return end
  found[#found + 1] = q
  found[#found + 1] = st
  found[#found + 1] = n
end
local rest = call('HGETALL', P .. 'n')
local waiting = {}
for i = 1, #rest, 2 do
  local st, q, n = string.sub(rest[i], 1, 1), string.sub(rest[i], 2), tonumber(rest[i + 1])
  if st == '0' then waiting[q] = n else add(q, tonumber(st), n) end
end
for _, q in ipairs(call('SMEMBERS', P .. 'qs')) do
  local due, after = 0, {}
  for _, line in ipairs({'s:', 'r:'}) do
    local ready = call('ZCOUNT', P .. line .. q, '-inf', text(now))
    due = due + ready
    after[line] = call('ZCARD', P .. line .. q) - ready
  end
  add(q, 1, due + call('ZCARD', P .. 'p:' .. q))
  add(q, 0, after['s:'] + (waiting[q] or 0))
  add(q, 3, after['r:'])
end
return found
)lua";

} // namespace holdfast::redis::lua
