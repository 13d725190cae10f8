// Jobs: how they come in, are worked on and end.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// A number of records with the due time as asked for (how in place of the state), and these; then per job: id, what, and
// the number of its record if there are several. Gives place and id of those that were there already.
//
// Most calls bring new jobs that are due now, without key or parent. Nothing is written when one is not so: then comes
// what follows. One alone is claimed right here for a worker that has said that it waits, if nobody is before it.
const std::string_view enqueue_plain = R"lua(
local function enqueue_plain()
  local count = tonumber(ARGV[2])
  local first, step = count + 3, count == 1 and 2 or 3
  local kinds, lines, hand_over = {}, {}, nil
  for i = 1, count do
    local how, flags, max, _, _, keep, _, _, _, _, _, maxc, gen, pri, q, _, uk, par = struct.unpack(FORM, ARGV[i + 2])
    if how ~= 0 or uk ~= '' or par ~= '' then return end
    lines[q] = lines[q] or {}
    hand_over = count == 1 and function(id, what)
      local idle = P .. 'a:' .. q
      local one = call('HRANDFIELD', idle, 1, 'WITHVALUES')
      if #one == 0 or #what > 65536 or call('EXISTS', P .. 'p:' .. q) == 1 then return false end
      local to, number = string.match(one[1], '^(%S+) (%d+)$')
      local channel = P .. 'to:' .. to
      -- Whoever listens to patterns hears all, and is not that worker.
      local ears = redis.pcall('PUBSUB', 'NUMSUB', channel)
      if not ears.err and ears[2] == 0 then
        call('HDEL', idle, one[1])
        return hand_over(id, what) -- that worker is gone
      end
      local lease, worker = string.match(one[2], '^(%d+) (.*)$')
      local record = struct.pack(FORM, 2, flags, max, now, now, keep, now, 0, now, 1, 0, maxc, gen, pri, #q, q,
                                 #worker, worker, 0, '', 0, '')
      call('HDEL', idle, one[1])
      call('HSET', P .. 'j', id, record) -- what lacks memory fails here, before it is told
      redis.set_repl(redis.REPL_NONE) -- whoever still listens to a replica is not counted, and must not hear it
      local heard = redis.pcall('PUBLISH', channel, struct.pack('>I4I4c0I4c0I4c0', tonumber(number), #id, id, #record, record,
                                                                #what, what))
      redis.set_repl(redis.REPL_ALL)
      if heard == 0 then return hand_over(id, what) end -- that worker is gone
      if type(heard) ~= 'number' then return false end
      call('HSET', P .. 'd', id, what)
      call('RPUSH', P .. 'ob', id)
      call('ZADD', P .. 'l', text(later(tonumber(lease))), id)
      count_by('2' .. q, 1)
      call('SADD', P .. 'qs', q)
      return true
    end
    kinds[i] = {
      struct.pack(FORM, 1, flags, max, 0, now, keep, now, 0, 0, 0, 0, maxc, gen, pri, #q, q, 0, '', 0, '', 0, ''),
      string.format('%08x%016.0f', 2147483647 - pri, now), lines[q]}
  end
  local found, ids, n = {}, {}, 0
  for i = first, stop, step do
    local id = ARGV[i]
    if found[id] then return end
    found[id] = true
    n = n + 1
    ids[n] = id
  end
  local forgets = call('EXISTS', P .. 't') == 1
  for i = 1, n, 2000 do
    local to = math.min(i + 1999, n)
    for _, there in ipairs(call('HMGET', P .. 'j', unpack(ids, i, to))) do
      if there then return end
    end
    if forgets then
      for _, till in ipairs(call('ZMSCORE', P .. 't', unpack(ids, i, to))) do
        if till then return end
      end
    end
  end
  if n == 1 and hand_over(ids[1], ARGV[first + 1]) then return {} end
  local records, whats, i = {}, {}, first
  for k = 1, 2 * n, 2 do
    local id, kind = ARGV[i], kinds[step == 2 and 1 or tonumber(ARGV[i + 2])]
    local line = kind[3]
    local m = #line
    line[m + 1], line[m + 2] = '0', kind[2] .. id
    records[k], records[k + 1] = id, kind[1]
    whats[k], whats[k + 1] = id, ARGV[i + 1]
    i = i + step
  end
  many('HSET', P .. 'j', records, 2 * n)
  many('HSET', P .. 'd', whats, 2 * n)
  many('RPUSH', P .. 'ob', ids, n)
  for q, line in pairs(lines) do
    many('ZADD', P .. 'p:' .. q, line, #line)
    call('SADD', P .. 'qs', q)
    hint(q)
  end
  return {}
end
local plain = enqueue_plain()
if plain then return plain end
)lua";

// As above, of any kind.
const std::string_view enqueue = R"lua(
local function enqueue()
  local answers, ids, notes = {}, {}, {}
  local count = num()
  local records, step = at, count == 1 and 2 or 3
  at = at + count
  for i = at + 1, stop, step do ids[#ids + 1] = ARGV[i] end
  fetch(ids)
  for i = 1, #ids, 2000 do
    for _, note in ipairs(call('ZMSCORE', P .. 't', unpack(ids, i, math.min(i + 1999, #ids)))) do
      notes[#notes + 1] = note
    end
  end
  for n, id in ipairs(ids) do
    local record = step == 2 and 1 or tonumber(ARGV[at + 3])
    local j, what = {struct.unpack(FORM, ARGV[records + record])}, ARGV[at + 2]
    at = at + step
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
    if not fresh then
      answers[#answers + 1] = n
      answers[#answers + 1] = name
    end
  end
  return answers
end
)lua";

// Worker, lease, limit, the address of its watch or nothing, queues. Gives id, record and what, per job. Records that are
// alike, as those of a bulk are, are worked out once. A worker that has room left is noted as idle, one that has not is not.
const std::string_view claim = R"lua(
local worker, lease, room, address = arg(), num(), num(), arg()
local till = text(later(lease))
local function promote(from, to)
  for _ = 1, 10 do
    local due = call('ZRANGEBYSCORE', from, '-inf', now, 'LIMIT', 0, 1000)
    if #due == 0 then return end
    local pairs_of = {}
    for i, m in ipairs(due) do pairs_of[2 * i - 1], pairs_of[2 * i] = '0', m end
    call('ZADD', to, unpack(pairs_of))
    call('ZREM', from, unpack(due))
  end
end
local function claimed_record(packed)
  local _, flags, max, tok, due, keep, cr, ended, _, att, crash, maxc, gen, pri, q, _, uk, par =
    struct.unpack(FORM, packed)
  return struct.pack(FORM, 2, band(flags, 65535 - BEGUN), max, newer(tok), due, keep, cr, ended, now, att + 1,
                     crash, maxc, gen, pri, #q, q, #worker, worker, #uk, uk, #par, par)
end
local claimed, n, alike = {}, 0, {}
local function take(q)
  local line, most = P .. 'p:' .. q, math.min(room, 2000)
  local ids = call('ZRANGE', line, 0, most - 1)
  if #ids == 0 then return false end
  local more = #ids == most
  call('ZREMRANGEBYRANK', line, 0, #ids - 1)
  for i = 1, #ids do ids[i] = string.sub(ids[i], 25) end
  local whats = call('HMGET', P .. 'd', unpack(ids))
  local records = call('HMGET', P .. 'j', unpack(ids))
  local changed, leased, m = {}, {}, 0
  for i = 1, #ids do
    local id, packed = ids[i], records[i]
    if packed then
      local record = alike[packed]
      if not record then record = claimed_record(packed); alike[packed] = record end
      changed[m + 1], changed[m + 2] = id, record
      leased[m + 1], leased[m + 2] = till, id
      m = m + 2
      claimed[n + 1], claimed[n + 2], claimed[n + 3] = id, record, whats[i]
      n = n + 3
    end
  end
  many('HSET', P .. 'j', changed, m)
  many('ZADD', P .. 'l', leased, m)
  count_by('2' .. q, m / 2)
  room = room - m / 2
  return more and room > 0
end
local first = at
while at < stop and room > 0 do
  local q = arg()
  local special = call('EXISTS', P .. 'paused', P .. 's:' .. q, P .. 'r:' .. q) > 0 -- mostly there is none of these
  if not special or call('SISMEMBER', P .. 'paused', q) == 0 then
    if special then
      promote(P .. 's:' .. q, P .. 'p:' .. q)
      promote(P .. 'r:' .. q, P .. 'p:' .. q)
    end
    while take(q) do end
  end
end
if address ~= '' then
  for i = first + 1, stop do
    local q = ARGV[i]
    local idle = P .. 'a:' .. q
    if room == 0 then
      call('HDEL', idle, address)
    elseif call('SISMEMBER', P .. 'paused', q) == 0 then
      if call('HSET', idle, address, text(lease) .. ' ' .. worker) == 1 and call('HLEN', idle) > 100 then
        call('DEL', idle) -- most of them are gone; the others come again
      end
    end
  end
end
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
// text for nothing of these. A text with two digits per job, answer and state.
//
// Most are successes of jobs that have nothing to them: no key, no children, no words, no earlier attempts. These are
// settled first, in a few commands; what follows does the others.
const std::string_view settle_plain = R"lua(
local answers, left = {}, 0
local function settle_plain(keep)
  local ids, n = {}, 0
  for i = 3, stop, 4 do n = n + 1; ids[n] = ARGV[i] end
  local function ending(packed)
    local st, flags, max, tok, due, own, cr, _, began, att, crash, maxc, gen, pri, q, wk, uk, par =
      struct.unpack(FORM, packed)
    if st ~= 2 or uk ~= '' or band(flags, KIDS + WORDS + PAST) ~= 0 then return {} end
    local found = {token = text(tok), queue = q, own = own >= 0}
    local span = found.own and own or keep
    if span <= 0 then return found end
    found.till = text(later(span))
    found.kept = struct.pack(FORM, 4, bor(flags, TOLD), max, tok, due, own, cr, now, began, att, crash, maxc, gen, pri, #q,
                             q, #wk, wk, #uk, uk, #par, par)
    return found
  end
  local alike, seen, ended, e = {}, {}, {}, 0
  local gone, g, kept, k, by_id, by_age, f, own_age, own_till, o = {}, 0, {}, 0, {}, {}, 0, {}, {}, 0
  local present, done, stays = text(now), {}, {}
  for from = 1, n, 2000 do
    local records = call('HMGET', P .. 'j', unpack(ids, from, math.min(from + 1999, n)))
    for i = 1, #records do
      local place, packed = from + i - 1, records[i]
      local id, token = ids[place], 4 * place
      local as = packed and ARGV[token + 1] == '0' and ARGV[token + 2] == '' and not seen[id] and alike[packed]
      if as == nil then as = ending(packed); alike[packed] = as end
      if not as or as.token ~= ARGV[token] then
        left = left + 1
      else
        local q = as.queue
        seen[id] = true
        answers[place] = '04'
        e = e + 1
        ended[e] = id
        done[q] = (done[q] or 0) - 1
        if as.kept then
          kept[k + 1], kept[k + 2] = id, as.kept
          by_id[k + 1], by_id[k + 2] = '0', id
          k = k + 2
          stays[q] = (stays[q] or 0) + 1
          if as.own then
            own_age[o + 1], own_age[o + 2] = present, id
            own_till[o + 1], own_till[o + 2] = as.till, id
            o = o + 2
          else
            by_age[f + 1], by_age[f + 2] = present, id
            f = f + 2
          end
        else
          g = g + 1
          gone[g] = id
        end
      end
    end
  end
  many('HDEL', P .. 'j', gone, g)
  many('HDEL', P .. 'd', gone, g)
  many('HSET', P .. 'j', kept, k)
  many('ZREM', P .. 'l', ended, e)
  many('ZREM', P .. 'o', ended, e)
  many('ZADD', P .. 'f:4', by_id, k)
  many('ZADD', P .. 'e:4', by_age, f)
  many('ZADD', P .. 'ek', own_age, o)
  many('ZADD', P .. 'x', own_till, o)
  for q, by in pairs(done) do count_by('2' .. q, by) end
  for q, by in pairs(stays) do count_by('4' .. q, by) end
  keep_book(n, seen)
end
settle_plain(tonumber(ARGV[2]))
if left == 0 then return table.concat(answers) end
)lua";

// As above, of any kind.
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
-- Those that have no answer yet.
local function settle(answers)
  local n, keep = 0, num()
  fetch_every(4)
  while at < stop do
    local id, token, how, more = arg(), arg(), num(), arg()
    n = n + 1
    if not answers[n] then
      local j = known[id]
      local is_mine = mine(j, token)
      answers[n] = answer_to(j, is_mine) .. (is_mine and settle_one(id, j, how, more, keep) or (j and j[ST] or 4))
    end
  end
  return table.concat(answers)
end
)lua";

} // namespace holdfast::redis::lua
