// Jobs: what the scripts about them share.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// States are the numbers of job_state: 0 scheduled, 1 pending, 2 processing, 3 waiting_retry, 4 succeeded, 5 failed,
// 6 dead_letter, 7 cancelled, 8 indeterminate. A record is a table with the fields of record.hpp by number.
const std::string_view job_form = R"lua(
local ST, FLAGS, MAX, TOK, DUE, KEEP, CR, END, AT, ATT, CRASH, MAXC, GEN, PRI, Q, WK, UK, PAR =
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
local RS, CXL, BEGUN, WFP, CBP, KIDS, TOLD, WORDS, PAST = 1, 2, 4, 8, 16, 32, 64, 128, 256
local FORM = '>BHBddddddI4I4I4I4i4Hc0I4c0Hc0Hc0'
local band, bor = bit.band, bit.bor
local function many(command, key, list, n)
  for i = 1, n, 2000 do call(command, key, unpack(list, i, math.min(i + 1999, n))) end
end
local function count_by(field, by)
  if by ~= 0 and call('HINCRBY', P .. 'n', field, by) <= 0 then call('HDEL', P .. 'n', field) end
end
)lua";

// Most jobs have ended before anybody asks for a list of those that have not. So their ids wait in line, which costs a
// tenth of a place in a sorted book, until somebody does. For every job that ends one is taken from the line, so that it
// never grows longer than the number of open jobs.
const std::string_view open_book = R"lua(
local function keep_book(most, ended)
  if most < 1 then return end
  local ids, asked, n = call('LPOP', P .. 'ob', most), {}, 0
  for _, id in ipairs(ids or {}) do
    if not ended[id] then n = n + 1; asked[n] = id end
  end
  for from = 1, n, 2000 do
    local records = call('HMGET', P .. 'j', unpack(asked, from, math.min(from + 1999, n)))
    local open, m = {}, 0
    for i = 1, #records do
      if records[i] and string.byte(records[i]) < 4 then
        open[m + 1], open[m + 2] = '0', asked[from + i - 1]
        m = m + 2
      end
    end
    many('ZADD', P .. 'o', open, m)
  end
end
)lua";

// What is read is kept and what is written waits for write_all(), so that a batch costs a handful of commands, and a
// script that stops before it has changed nothing. Every function costs a script that has it in front some 300 ns: each
// gets those that it needs.
const std::string_view job_books = R"lua(
local function has(j, flag) return band(j[2], flag) ~= 0 end
local function set(j, flag) j[2] = bor(j[2], flag) end
local function clear(j, flag) j[2] = band(j[2], 65535 - flag) end

local known, hashes, lines, kids, forgotten, past = {}, {}, {}, {}, {}, {}
local tally, ready, queues = {}, {}, {}
-- False takes it out.
local function put(hash, field, value)
  local h = hashes[hash]
  if not h then h = {}; hashes[hash] = h end
  h[field] = value
end
local function enter(line, member, score)
  local l = lines[line]
  if not l then l = {}; lines[line] = l end
  l[member] = score
end
local function count(st, queue, by)
  local t = tally[st]
  if not t then t = {}; tally[st] = t end
  t[queue] = (t[queue] or 0) + by
end

local function fetch(ids)
  for i = 1, #ids, 2000 do
    local to = math.min(i + 1999, #ids)
    local found = call('HMGET', P .. 'j', unpack(ids, i, to))
    for k = i, to do
      local id, packed = ids[k], found[k - i + 1]
      if known[id] == nil then known[id] = packed and {struct.unpack(FORM, packed)} end
    end
  end
end
local function load(id)
  if known[id] == nil then fetch({id}) end
  return known[id]
end
local function save(id, j)
  local q, wk, uk, par = j[15], j[16], j[17], j[18]
  local packed = struct.pack(FORM, j[1], j[2], j[3], j[4], j[5], j[6], j[7], j[8], j[9], j[10], j[11], j[12], j[13],
                             j[14], #q, q, #wk, wk, #uk, uk, #par, par)
  known[id] = j
  put('j', id, packed)
  return packed
end
-- The rare texts: percent, note, type and message of the last error, output.
local function words_of(id, j)
  if not has(j, WORDS) then return {0, '', '', '', ''} end
  local packed = (hashes.w and hashes.w[id]) or call('HGET', P .. 'w', id)
  return cmsgpack.unpack(packed)
end
local function say(id, j, words)
  set(j, WORDS)
  put('w', id, cmsgpack.pack(words))
end
local function erase(id, j)
  known[id] = false
  put('j', id, false)
  put('d', id, false)
  if has(j, WORDS) then put('w', id, false) end
  if has(j, PAST) then forgotten[#forgotten + 1] = P .. 'h:' .. id; past[id] = nil end
end

local function write_all()
  for hash, entries in pairs(hashes) do
    local some, none, n, m = {}, {}, 0, 0
    for field, value in pairs(entries) do
      if value then some[n + 1], some[n + 2] = field, value; n = n + 2 else m = m + 1; none[m] = field end
    end
    many('HSET', P .. hash, some, n)
    many('HDEL', P .. hash, none, m)
  end
  for line, entries in pairs(lines) do
    local some, none, n, m = {}, {}, 0, 0
    for member, score in pairs(entries) do
      if score then some[n + 1], some[n + 2] = score, member; n = n + 2 else m = m + 1; none[m] = member end
    end
    many('ZADD', P .. line, some, n)
    many('ZREM', P .. line, none, m)
  end
  for id, list in pairs(past) do call('RPUSH', P .. 'h:' .. id, unpack(list)) end
  for parent, list in pairs(kids) do
    if list then many('SADD', P .. 'c:' .. parent, list, #list) else call('UNLINK', P .. 'c:' .. parent) end
  end
  for _, key in ipairs(forgotten) do call('UNLINK', key) end
  for queue in pairs(queues) do call('SADD', P .. 'qs', queue) end
  for st, queues in pairs(tally) do
    for queue, by in pairs(queues) do count_by(st .. queue, by) end
  end
  for queue in pairs(ready) do hint(queue) end
end
)lua";

// Lines and books of jobs that come, wait and end.
const std::string_view line_rules = R"lua(
local ENDED = {[4] = 'f:4', [5] = 'f:5', [6] = 'f:6', [7] = 'f:7', [8] = 'f:8'}
local BY_AGE = {[4] = 'e:4', [5] = 'e:5', [6] = 'e:6', [7] = 'e:7', [8] = 'e:8'}
local present = text(now) -- scores are cheaper as text
local function member(id, j) return string.format('%08x%016.0f', 2147483647 - j[PRI], j[DUE]) .. id end
local function line_up(id, j)
  local q = j[Q]
  if has(j, WFP) then return count(0, q, 1) end
  if j[DUE] <= now then
    enter('p:' .. q, member(id, j), '0')
    ready[q] = true
  else
    enter((j[ST] == 3 and 'r:' or 's:') .. q, member(id, j), j[DUE])
  end
end
local function step_out(id, j)
  local q, m = j[Q], member(id, j)
  if has(j, WFP) then return count(0, q, -1) end
  enter('p:' .. q, m, false)
  enter('s:' .. q, m, false)
  enter('r:' .. q, m, false)
end

local function holder(key)
  local h = hashes.u and hashes.u[key]
  if h ~= nil then return h end
  return call('HGET', P .. 'u', key)
end
local function key_is_free(j) return j[UK] == '' or not holder(j[UK]) end
-- Into the books of the open jobs.
local function open(id, j)
  enter('o', id, '0')
  if j[UK] ~= '' then put('u', j[UK], id) end
end
-- By time of end; jobs that say themselves how long they are kept have a book of their own.
local function age_book(j, st) return (st == 4 and j[KEEP] >= 0) and 'ek' or BY_AGE[st] end
-- What an end does to the job's own books; the state is not written yet. True: it was deleted.
local function close(id, j, st, keep)
  enter('o', id, false)
  if j[UK] ~= '' and holder(j[UK]) == id then put('u', j[UK], false) end
  if st == 4 then
    if j[KEEP] >= 0 then keep = j[KEEP] end
    if keep <= 0 then erase(id, j) return true end
    if j[KEEP] >= 0 then enter('x', id, later(keep)) end
  end
  enter(ENDED[st], id, '0')
  enter(age_book(j, st), id, present)
  count(st, j[Q], 1)
  return false
end
)lua";

// What follows from an end.
const std::string_view end_rules = R"lua(
-- Out of the books of the ended ones.
local function unfile(id, j)
  enter(ENDED[j[ST]], id, false)
  enter(age_book(j, j[ST]), id, false)
  count(j[ST], j[Q], -1)
end
local function forget(id, j, keep_note)
  unfile(id, j)
  if j[KEEP] >= 0 then enter('x', id, false) end
  if has(j, KIDS) then kids[id] = false end
  erase(id, j)
  if keep_note > 0 then enter('t', id, later(keep_note)) end
end

local function children(parent)
  local waiting = kids[parent]
  if waiting == false then return {} end
  local all = call('SMEMBERS', P .. 'c:' .. parent)
  for _, id in ipairs(waiting or {}) do all[#all + 1] = id end
  return all
end
-- A parent's end lets its children go, or cancels them and theirs.
local function tell_children(parent, good)
  local parents = {parent}
  while #parents > 0 do
    local p = table.remove(parents)
    for _, id in ipairs(children(p)) do
      local j = load(id)
      if j and has(j, WFP) and j[ST] < 4 then
        step_out(id, j)
        clear(j, WFP)
        if good then
          if j[DUE] <= now then j[ST] = 1 end
          line_up(id, j)
        else
          close(id, j, 7, 0)
          j[ST], j[END] = 7, now
          set(j, CBP)
          if has(j, KIDS) then parents[#parents + 1] = id end
        end
        save(id, j)
      end
    end
    if good then kids[p] = false end
  end
end
-- To a final state, but for what end_attempt writes.
local function finish(id, j, st, keep)
  if not close(id, j, st, keep) then
    j[ST], j[END] = st, now
    save(id, j)
  end
  if has(j, KIDS) then tell_children(id, st == 4) end
end

local function stop_work(id, j)
  enter('l', id, false)
  count(2, j[Q], -1)
end
-- Of a processing job, which is not saved yet.
local function end_attempt(id, j, outcome, kind, message)
  stop_work(id, j)
  set(j, PAST)
  past[id] = past[id] or {}
  table.insert(past[id], cmsgpack.pack({text(j[GEN]), text(j[ATT]), text(j[TOK]), j[WK], text(j[AT]), text(now), outcome,
                                        kind, message}))
  j[WK] = ''
  if kind ~= '' or message ~= '' then
    local words = words_of(id, j)
    words[3], words[4] = kind, message
    say(id, j, words)
  end
end
)lua";

} // namespace holdfast::redis::lua
