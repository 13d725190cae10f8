// Jobs: how they come in, are worked on and end.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// States are the numbers of job_state: 0 scheduled, 1 pending, 2 processing, 3 waiting_retry, 4 succeeded, 5 failed,
// 6 dead_letter, 7 cancelled, 8 indeterminate.
const std::string_view job_rules = R"lua(
local fields = {'st', 'tok', 'q', 'pri', 'due', 'att', 'max', 'crash', 'gen', 'rs', 'cxl', 'begun', 'wfp', 'cbp',
                'keep', 'maxc', 'type', 'uk', 'wk', 'at', 'kids'}
local numeric = {st = 1, pri = 1, due = 1, att = 1, max = 1, crash = 1, gen = 1, keep = 1, maxc = 1}
local function load(id)
  local v = call('HMGET', P .. 'j:' .. id, unpack(fields))
  if not v[1] then return nil end
  local j = {id = id}
  for i, name in ipairs(fields) do
    if numeric[name] then j[name] = tonumber(v[i]) else j[name] = v[i] end
  end
  return j
end
local function change(id, ...) call('HSET', P .. 'j:' .. id, ...) end

local tally = {}
local function count(st, queue, by) tally[st .. queue] = (tally[st .. queue] or 0) + by end
local function write_counts()
  for field, by in pairs(tally) do
    if by ~= 0 and call('HINCRBY', P .. 'n', field, by) <= 0 then call('HDEL', P .. 'n', field) end
  end
end

local function member(j) return string.format('%08x%016.0f', 2147483647 - j.pri, j.due) .. j.id end
local function line_up(j)
  if j.wfp then return count(0, j.q, 1) end
  if j.due <= now then call('ZADD', P .. 'p:' .. j.q, 0, member(j))
  elseif j.st == 3 then call('ZADD', P .. 'r:' .. j.q, text(j.due), member(j))
  else call('ZADD', P .. 's:' .. j.q, text(j.due), member(j)) end
end
local function step_out(j)
  if j.wfp then return count(0, j.q, -1) end
  local m = member(j)
  if call('ZREM', P .. 'p:' .. j.q, m) == 0 and call('ZREM', P .. 's:' .. j.q, m) == 0 then
    call('ZREM', P .. 'r:' .. j.q, m)
  end
end

local function key_of(j) return j.type .. '\0' .. j.uk end
local function key_is_free(j) return not j.uk or not call('HGET', P .. 'u', key_of(j)) end
-- Into the books of the open jobs.
local function open(j)
  call('ZADD', P .. 'o', 0, j.id)
  if j.uk then call('HSET', P .. 'u', key_of(j), j.id) end
end
-- Out of the books of the ended ones.
local function unfile(j)
  call('ZREM', P .. 'f:' .. j.st, j.id)
  call('ZREM', P .. 'e:' .. j.st, j.id)
  count(j.st, j.q, -1)
end
local function forget(j, keep_note)
  unfile(j)
  call('ZREM', P .. 'x', j.id)
  call('UNLINK', P .. 'j:' .. j.id, P .. 'h:' .. j.id, P .. 'c:' .. j.id)
  if keep_note > 0 then call('ZADD', P .. 't', text(later(keep_note)), j.id) end
end

-- What an end does to the job's own books; the state is not written yet. True: it was deleted.
local function close(j, st, keep)
  call('ZREM', P .. 'o', j.id)
  if j.uk and call('HGET', P .. 'u', key_of(j)) == j.id then call('HDEL', P .. 'u', key_of(j)) end
  if st == 4 then
    if j.keep then keep = j.keep end
    if keep <= 0 then
      call('UNLINK', P .. 'j:' .. j.id, P .. 'h:' .. j.id)
      return true
    end
    call('ZADD', P .. 'x', text(later(keep)), j.id)
  end
  call('ZADD', P .. 'f:' .. st, 0, j.id)
  call('ZADD', P .. 'e:' .. st, text(now), j.id)
  count(st, j.q, 1)
  return false
end

-- A parent's end lets its children go, or cancels them and theirs.
local function tell_children(parent, good)
  local parents = {parent}
  while #parents > 0 do
    local p = table.remove(parents)
    for _, id in ipairs(call('SMEMBERS', P .. 'c:' .. p)) do
      local j = load(id)
      if j and j.wfp and j.st < 4 then
        step_out(j)
        j.wfp = false
        call('HDEL', P .. 'j:' .. id, 'wfp')
        if good then
          if j.due <= now then j.st = 1; change(id, 'st', 1) end
          line_up(j)
        else
          close(j, 7, 0)
          change(id, 'st', 7, 'cbp', 1, 'end', text(now))
          if j.kids then parents[#parents + 1] = id end
        end
      end
    end
    if good then call('UNLINK', P .. 'c:' .. p) end
  end
end
-- To a final state, but for what end_attempt writes.
local function finish(j, st, keep)
  local gone = close(j, st, keep)
  if not gone then change(j.id, 'st', st, 'end', text(now)) end
  if j.kids then tell_children(j.id, st == 4) end
end

-- Of a processing job; `number` is the attempt's, as it was claimed.
local function end_attempt(j, outcome, kind, message)
  call('ZREM', P .. 'l', j.id)
  count(2, j.q, -1)
  call('RPUSH', P .. 'h:' .. j.id,
       cmsgpack.pack({text(j.gen), text(j.att), j.tok, j.wk, j.at, text(now), outcome, kind, message}))
  change(j.id, 'wk', '', 'till', '')
  if kind ~= '' or message ~= '' then change(j.id, 'let', kind, 'lem', message) end
end
)lua";

// Per job: id, type, version, content type, body, queue, priority, due (2), attempts, crashes, may restart, has unique
// key, unique key, parent, keep, headers. Gives created and id, per job.
const std::string_view enqueue = R"lua(
local answers = {}
local known = {}
while at < #ARGV do
  local j = {id = arg(), type = arg()}
  local version, content, body = arg(), arg(), arg()
  j.q = arg()
  j.pri = num()
  j.due = due_time()
  local max, crashes, restart, unique, key, parent, keep, extra = arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()
  if unique == '1' then j.uk = key end
  local created, id = 0, j.id
  local note = call('ZSCORE', P .. 't', id)
  if call('EXISTS', P .. 'j:' .. id) == 0 and not (note and tonumber(note) > now) then
    local holder = j.uk and call('HGET', P .. 'u', key_of(j))
    if holder then id = holder else created = 1 end
  end
  if created == 1 then
    local parent_state = parent ~= '' and call('HGET', P .. 'j:' .. parent, 'st')
    local dead = false
    if parent_state and parent_state ~= '4' then
      dead = tonumber(parent_state) > 4
      j.wfp = not dead
      call('SADD', P .. 'c:' .. parent, id)
      change(parent, 'kids', 1)
    end
    j.st = (j.wfp or j.due > now) and 0 or 1
    change(id, 'id', id, 'type', j.type, 'ver', version, 'ct', content, 'body', body, 'q', j.q, 'pri', text(j.pri),
           'st', j.st, 'cr', text(now), 'due', text(j.due), 'att', 0, 'max', max, 'crash', 0, 'gen', 1,
           'rs', restart, 'maxc', crashes, 'tok', 0, 'ex', extra)
    if j.uk then change(id, 'uk', j.uk) end
    if parent ~= '' then change(id, 'par', parent) end
    if keep ~= '' then change(id, 'keep', keep) end
    if not known[j.q] then call('SADD', P .. 'qs', j.q); known[j.q] = true end
    if dead then
      j.uk = nil
      close(j, 7, 0)
      change(id, 'st', 7, 'cbp', 1, 'end', text(now))
    else
      if j.wfp then change(id, 'wfp', 1) end
      open(j)
      line_up(j)
    end
  end
  answers[#answers + 1] = created
  answers[#answers + 1] = id
end
write_counts()
return answers
)lua";

// Worker, lease, limit, queues.
const std::string_view claim = R"lua(
local worker, span, room = arg(), num(), num()
local till = text(later(span))
local function promote(from, to)
  for _ = 1, 10 do
    local due = call('ZRANGEBYSCORE', from, '-inf', text(now), 'LIMIT', 0, 1000)
    if #due == 0 then return end
    local pairs_of = {}
    for _, m in ipairs(due) do
      pairs_of[#pairs_of + 1] = 0
      pairs_of[#pairs_of + 1] = m
    end
    call('ZADD', to, unpack(pairs_of))
    call('ZREM', from, unpack(due))
  end
end
local claimed = {}
local function take(m, q)
  local id = string.sub(m, 25)
  local key = P .. 'j:' .. id
  local v = call('HMGET', key, 'tok', 'att', 'type', 'ver', 'ct', 'body', 'pri', 'max', 'crash', 'gen', 'rs', 'cxl',
                 'ex')
  if not v[1] then return end
  local token, attempt = text(newer(v[1])), v[2] + 1
  call('HSET', key, 'st', 2, 'tok', token, 'att', attempt, 'wk', worker, 'at', text(now), 'till', till, 'begun', 0)
  call('ZADD', P .. 'l', till, id)
  count(2, q, 1)
  claimed[#claimed + 1] = {id, token, v[3], v[4], v[5], v[6], q, v[7], tostring(attempt), v[8], v[9], v[10], v[11],
                           v[12] or '0', v[13]}
  room = room - 1
end
while at < #ARGV and room > 0 do
  local q = arg()
  if call('SISMEMBER', P .. 'paused', q) == 0 then
    promote(P .. 's:' .. q, P .. 'p:' .. q)
    promote(P .. 'r:' .. q, P .. 'p:' .. q)
    local got = call('ZPOPMIN', P .. 'p:' .. q, room)
    for i = 1, #got, 2 do take(got[i], q) end
  end
end
write_counts()
return claimed
)lua";

// Per job: id, token. Answers are the numbers of write_answer.
const std::string_view started = R"lua(
local answers = {}
while at < #ARGV do
  local key, token = P .. 'j:' .. arg(), arg()
  local v = call('HMGET', key, 'st', 'tok')
  local mine = v[1] == '2' and v[2] == token
  if mine then call('HSET', key, 'begun', 1) end
  answers[#answers + 1] = mine and 0 or (v[1] and 1 or 2)
end
return answers
)lua";

// Lease; per job: id, token. Answer and cancel_requested, per job.
const std::string_view heartbeat = R"lua(
local till = text(later(num()))
local answers = {}
while at < #ARGV do
  local id, token = arg(), arg()
  local v = call('HMGET', P .. 'j:' .. id, 'st', 'tok', 'cxl')
  local mine = v[1] == '2' and v[2] == token
  if mine then
    call('HSET', P .. 'j:' .. id, 'till', till)
    call('ZADD', P .. 'l', till, id)
  end
  answers[#answers + 1] = mine and 0 or (v[1] and 1 or 2)
  answers[#answers + 1] = (mine and v[3] == '1') and 1 or 0
end
return answers
)lua";

// Per job: id, token, percent, note.
const std::string_view progress = R"lua(
local answers = {}
while at < #ARGV do
  local key, token, percent, note = P .. 'j:' .. arg(), arg(), arg(), arg()
  local v = call('HMGET', key, 'st', 'tok')
  local mine = v[1] == '2' and v[2] == token
  if mine then call('HSET', key, 'pct', percent, 'note', note) end
  answers[#answers + 1] = mine and 0 or (v[1] and 1 or 2)
end
return answers
)lua";

// Retention of succeeded ones; per job: id, token, settlement::kind, due (2), error (2), output. Answer and state, per
// job.
const std::string_view settle = R"lua(
local keep = num()
local outcomes = {[0] = 'succeeded', 'retry', 'dead_letter', 'failed', 'cancelled', 'released', 'snoozed',
                  'indeterminate'}
local ends = {[0] = 4, [2] = 6, [3] = 5, [4] = 7, [7] = 8}
local answers = {}
local function settle_one(j, how, due, kind, message, output)
  local last = ends[how]
  if last == 4 and (j.keep or keep) <= 0 then
    call('ZREM', P .. 'l', j.id)
    count(2, j.q, -1)
    finish(j, 4, keep)
    return 4
  end
  end_attempt(j, outcomes[how], kind, message)
  if output ~= '' then change(j.id, 'out', output) end
  if not last and j.cxl == '1' then last = 7 end
  if how == 5 or how == 6 then change(j.id, 'att', j.att - 1) end
  if not last and how == 1 and j.att >= j.max then last = 6 end
  if last then
    finish(j, last, keep)
    return last
  end
  if how ~= 5 then j.due = due end
  j.st = how == 1 and 3 or ((how == 6 and j.due > now) and 0 or 1)
  change(j.id, 'st', j.st, 'due', text(j.due))
  line_up(j)
  return j.st
end
while at < #ARGV do
  local id, token, how = arg(), arg(), num()
  local due, kind, message, output = due_time(), arg(), arg(), arg()
  local j = load(id)
  local mine = j and j.st == 2 and j.tok == token
  answers[#answers + 1] = mine and 0 or (j and 1 or 2)
  answers[#answers + 1] = mine and settle_one(j, how, due, kind, message, output) or (j and j.st or 4)
end
write_counts()
return answers
)lua";

} // namespace holdfast::redis::lua
