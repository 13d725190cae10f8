// Jobs: what operators and the recovery loop do.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// Limit, how long a note of a forgotten job stays, retention of succeeded ones. Gives requeued, failed, deleted,
// dead_letter, and 1 when there is more to forget.
const std::string_view recover_stale = R"lua(
local limit, keep_note, keep = num(), num(), num()
local done = {0, 0, 0, 0, 0}
local function crash(id, j, kind, message)
  end_attempt(id, j, 'crashed', kind, message)
  j[ATT] = j[ATT] - 1
end
local function recover(id, j)
  if has(j, CXL) then
    crash(id, j, '', '')
    finish(id, j, 7, 0)
    return 3
  end
  if not has(j, RS) and has(j, BEGUN) then
    crash(id, j, 'crash', 'crash, restart not allowed')
    finish(id, j, 5, 0)
    return 2
  end
  if has(j, RS) then j[CRASH] = j[CRASH] + 1 end
  if j[CRASH] > j[MAXC] then
    crash(id, j, 'crash', 'crashed too often')
    finish(id, j, 6, 0)
    return 4
  end
  crash(id, j, '', '')
  j[ST] = 1
  save(id, j)
  line_up(id, j)
  return 1
end
local function overdue(book, before, most)
  local ids = call('ZRANGEBYSCORE', P .. book, '-inf', before, 'LIMIT', 0, most)
  if book ~= 'l' and #ids == most then done[5] = 1 end
  return ids
end
local stale = overdue('l', now, limit)
fetch(stale)
for _, id in ipairs(stale) do
  local j = known[id]
  if j and j[ST] == 2 then
    local what = recover(id, j)
    done[what] = done[what] + 1
  else
    enter('l', id, false)
  end
end
for book, before in pairs({x = now, ['e:4'] = now - keep}) do
  local old = overdue(book, before, 1000)
  fetch(old)
  for _, id in ipairs(old) do
    if known[id] then forget(id, known[id], keep_note) else enter(book, id, false) end
  end
end
for _, id in ipairs(overdue('t', now, 1000)) do enter('t', id, false) end
write_all()
keep_book(#stale, {})
return done
)lua";

// Ids. Answers are the numbers of cancel_answer.
const std::string_view cancel = R"lua(
local answers = {}
while at < #ARGV do
  local id = arg()
  local j = load(id)
  local answer = 2
  if j and j[ST] >= 4 then
    answer = 3
  elseif j then
    set(j, CXL)
    answer = j[ST] == 2 and 1 or 0
    if answer == 1 then
      save(id, j)
    else
      step_out(id, j)
      finish(id, j, 7, 0)
    end
  end
  answers[#answers + 1] = answer
end
write_all()
keep_book(#answers, {})
return answers
)lua";

// Ids. Gives how many.
const std::string_view requeue = R"lua(
local requeued = 0
local function rearm(parents)
  while #parents > 0 do
    for _, id in ipairs(children(table.remove(parents))) do
      local j = load(id)
      if j and has(j, CBP) and j[ST] == 7 and key_is_free(j) then
        unfile(id, j)
        j[ST], j[END] = 0, 0
        clear(j, CBP)
        set(j, WFP)
        save(id, j)
        open(id, j)
        line_up(id, j)
        if has(j, KIDS) then parents[#parents + 1] = id end
      end
    end
  end
end
while at < #ARGV do
  local id = arg()
  local j = load(id)
  if j and j[ST] >= 5 and key_is_free(j) then
    unfile(id, j)
    clear(j, CBP + WFP + CXL)
    j[ST], j[DUE], j[END], j[GEN], j[ATT], j[CRASH] = 1, now, 0, j[GEN] + 1, 0, 0
    save(id, j)
    open(id, j)
    line_up(id, j)
    if has(j, KIDS) then rearm({id}) end
    requeued = requeued + 1
  end
end
write_all()
return requeued
)lua";

// State, age, limit, how long a note stays. Gives how many.
const std::string_view purge = R"lua(
local st, age, limit, keep_note = arg(), num(), num(), num()
local purged = 0
for _, book in ipairs({'e:' .. st, st == '4' and 'ek' or nil}) do
  local old = call('ZRANGEBYSCORE', P .. book, '-inf', math.max(0, now - age), 'LIMIT', 0, limit - purged)
  fetch(old)
  for _, id in ipairs(old) do
    if known[id] then
      forget(id, known[id], keep_note)
      purged = purged + 1
    end
  end
end
write_all()
return purged
)lua";

// How long a note stays, ids. Gives how many.
const std::string_view discard_jobs = R"lua(
local keep_note = num()
local discarded = 0
while at < #ARGV do
  local id = arg()
  local j = load(id)
  if j and j[ST] >= 4 then
    forget(id, j, keep_note)
    discarded = discarded + 1
  end
end
write_all()
return discarded
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
local q, stops = arg(), arg() == '1'
local changed = call(stops and 'SADD' or 'SREM', P .. 'paused', q)
if stops then call('DEL', P .. 'a:' .. q) end -- nothing is handed over
if not stops then hint(q) end
return changed
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

} // namespace holdfast::redis::lua
