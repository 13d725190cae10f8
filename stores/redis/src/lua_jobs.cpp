// Jobs: how they come in, are worked on and end.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// Per job: id, record with the due time as asked for (how in place of the state), what. Gives created and id, per job.
const std::string_view enqueue = R"lua(
local function enqueue()
  local answers, ids, notes = {}, {}, {}
  for i = at + 1, stop, 3 do ids[#ids + 1] = ARGV[i] end
  fetch(ids)
  for i = 1, #ids, 2000 do
    for _, note in ipairs(call('ZMSCORE', P .. 't', unpack(ids, i, math.min(i + 1999, #ids)))) do
      notes[#notes + 1] = note
    end
  end
  for n, id in ipairs(ids) do
    local j, what = {struct.unpack(FORM, ARGV[at + 2])}, ARGV[at + 3]
    at = at + 3
    local fresh, name = not known[id] and not (notes[n] and tonumber(notes[n]) > now), id
    local other = fresh and j[UK] ~= '' and holder(j[UK])
    if other then fresh, name = false, other end
    if fresh then
      j[DUE], j[CR] = due_time(j[ST], j[DUE]), now
      local parent = j[PAR] ~= '' and load(j[PAR])
      local held_up = parent and parent[ST] ~= 4
      if held_up then
        kids[j[PAR]] = kids[j[PAR]] or {}
        table.insert(kids[j[PAR]], id)
        if not has(parent, KIDS) then set(parent, KIDS); save(j[PAR], parent) end
      end
      if held_up and parent[ST] > 4 then
        close(id, j, 7, 0)
        j[ST], j[END] = 7, now
        set(j, CBP)
      else
        if held_up then set(j, WFP) end
        j[ST] = (held_up or j[DUE] > now) and 0 or 1
        open(id, j)
        line_up(id, j)
      end
      put('d', id, what)
      save(id, j)
      queues[j[Q]] = true
    end
    answers[2 * n - 1], answers[2 * n] = fresh and 1 or 0, name
  end
  return answers
end
)lua";

// Worker, lease, limit, queues. Gives id, record and what, per job.
const std::string_view claim = R"lua(
local worker, till, room = arg(), text(later(num())), num()
local function promote(from, to)
  for _ = 1, 10 do
    local due = call('ZRANGEBYSCORE', from, '-inf', now, 'LIMIT', 0, 1000)
    if #due == 0 then return end
    local pairs_of = {}
    for i, m in ipairs(due) do pairs_of[2 * i - 1], pairs_of[2 * i] = 0, m end
    call('ZADD', to, unpack(pairs_of))
    call('ZREM', from, unpack(due))
  end
end
local claimed, n = {}, 0
local function take(q)
  local line = P .. 'p:' .. q
  local ids = call('ZRANGE', line, 0, math.min(room, 2000) - 1)
  if #ids == 0 then return false end
  call('ZREMRANGEBYRANK', line, 0, #ids - 1)
  for i = 1, #ids do ids[i] = string.sub(ids[i], 25) end
  local whats = call('HMGET', P .. 'd', unpack(ids))
  fetch(ids)
  for i = 1, #ids do
    local id = ids[i]
    local j = known[id]
    if j then
      j[ST], j[TOK], j[ATT], j[WK], j[AT] = 2, newer(j[TOK]), j[ATT] + 1, worker, now
      clear(j, BEGUN)
      enter('l', id, till)
      count(2, q, 1)
      claimed[n + 1], claimed[n + 2], claimed[n + 3] = id, save(id, j), whats[i]
      n = n + 3
      room = room - 1
    end
  end
  return room > 0
end
while at < #ARGV and room > 0 do
  local q = arg()
  if call('SISMEMBER', P .. 'paused', q) == 0 then
    promote(P .. 's:' .. q, P .. 'p:' .. q)
    promote(P .. 'r:' .. q, P .. 'p:' .. q)
    while take(q) do end
  end
end
write_all()
return claimed
)lua";

// Answers of owners are the numbers of write_answer.
const std::string_view owner_rules = R"lua(
local function mine(j, token) return j and j[ST] == 2 and j[TOK] == tonumber(token) end
local function answer_to(j, is_mine) return is_mine and 0 or (j and 1 or 2) end
local function fetch_every(step)
  local ids = {}
  for i = at + 1, stop, step do ids[#ids + 1] = ARGV[i] end
  fetch(ids)
end
)lua";

// Per job: id, token.
const std::string_view started = R"lua(
fetch_every(2)
local answers = {}
while at < #ARGV do
  local id, token = arg(), arg()
  local j = known[id]
  local is_mine = mine(j, token)
  if is_mine then
    set(j, BEGUN)
    save(id, j)
  end
  answers[#answers + 1] = answer_to(j, is_mine)
end
write_all()
return answers
)lua";

// Lease; per job: id, token. Answer and cancel_requested, per job.
const std::string_view heartbeat = R"lua(
local till = text(later(num()))
fetch_every(2)
local answers = {}
while at < #ARGV do
  local id, token = arg(), arg()
  local j = known[id]
  local is_mine = mine(j, token)
  if is_mine then enter('l', id, till) end
  answers[#answers + 1] = answer_to(j, is_mine)
  answers[#answers + 1] = (is_mine and has(j, CXL)) and 1 or 0
end
write_all()
return answers
)lua";

// Per job: id, token, percent, note.
const std::string_view progress = R"lua(
fetch_every(4)
local answers = {}
while at < #ARGV do
  local id, token, percent, note = arg(), arg(), num(), arg()
  local j = known[id]
  local is_mine = mine(j, token)
  if is_mine then
    local words = words_of(id, j)
    words[1], words[2] = percent, note
    say(id, j, words)
    save(id, j)
  end
  answers[#answers + 1] = answer_to(j, is_mine)
end
write_all()
return answers
)lua";

// Retention of succeeded ones; per job: id, token, settlement::kind, packed due (2), error (2) and output, or an empty
// text for nothing of these. Answer and state, per job.
const std::string_view settle = R"lua(
local outcomes = {[0] = 'succeeded', 'retry', 'dead_letter', 'failed', 'cancelled', 'released', 'snoozed',
                  'indeterminate'}
local ends = {[0] = 4, [2] = 6, [3] = 5, [4] = 7, [7] = 8}
local function succeed(id, j, keep)
  stop_work(id, j)
  set(j, TOLD) -- the record tells of this attempt
  finish(id, j, 4, keep)
  return 4
end
local function settle_one(id, j, how, more, keep)
  if how == 0 and more == '' then return succeed(id, j, keep) end
  local due_how, due_value, kind, message, output = 0, 0, '', '', ''
  if more ~= '' then due_how, due_value, kind, message, output = struct.unpack('>BdI4c0I4c0I4c0', more) end
  local last = ends[how]
  end_attempt(id, j, outcomes[how], kind, message)
  if output ~= '' then
    local words = words_of(id, j)
    words[5] = output
    say(id, j, words)
  end
  if not last and has(j, CXL) then last = 7 end
  if how == 5 or how == 6 then j[ATT] = j[ATT] - 1 end
  if not last and how == 1 and j[ATT] >= j[MAX] then last = 6 end
  if last then
    finish(id, j, last, keep)
    return last
  end
  if how ~= 5 then j[DUE] = due_time(due_how, due_value) end
  j[ST] = how == 1 and 3 or ((how == 6 and j[DUE] > now) and 0 or 1)
  save(id, j)
  line_up(id, j)
  return j[ST]
end
local function settle()
  local answers, n, keep = {}, 0, num()
  fetch_every(4)
  while at < stop do
    local id, token, how, more = arg(), arg(), num(), arg()
    local j = known[id]
    local is_mine = mine(j, token)
    answers[n + 1] = answer_to(j, is_mine)
    answers[n + 2] = is_mine and settle_one(id, j, how, more, keep) or (j and j[ST] or 4)
    n = n + 2
  end
  return answers
end
)lua";

} // namespace holdfast::redis::lua
