// Jobs: what is read.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// A job as it is shown: state as seen, id, record, what, rare texts, end of the lease.
const std::string_view view_rules = R"lua(
-- The state that others see.
local function seen(j)
  if (j[ST] == 0 or j[ST] == 3) and not has(j, WFP) and j[DUE] <= now then return 1 end
  return j[ST]
end
local function show(into, id, j, packed)
  local n = #into
  into[n + 1], into[n + 2], into[n + 3] = seen(j), id, packed
  into[n + 4] = call('HGET', P .. 'd', id)
  into[n + 5] = words_of(id, j)
  into[n + 6] = j[ST] == 2 and tonumber(call('ZSCORE', P .. 'l', id) or 0) or 0
end
)lua";

// Id, retention of succeeded ones. Gives the job and its attempts; or 1 for one that was there, 0 for one that never
// was.
const std::string_view get = R"lua(
local id, keep = arg(), num()
local packed = call('HGET', P .. 'j', id)
if not packed then
  local note = call('ZSCORE', P .. 't', id)
  return (note and tonumber(note) > now) and 1 or 0
end
local j = {struct.unpack(FORM, packed)}
if j[KEEP] >= 0 then keep = j[KEEP] end
if j[ST] == 4 and math.min(j[END] + keep, FAR) <= now then return 1 end
local found, attempts = {}, {}
show(found, id, j, packed)
for i, each in ipairs(call('LRANGE', P .. 'h:' .. id, 0, -1)) do attempts[i] = cmsgpack.unpack(each) end
found[#found + 1] = attempts
return found
)lua";

// State or empty, has queue, queue, has type, type, limit, id to start below or empty. Gives the id that the search
// came to, empty at its end, and the jobs. A * alone: ask again, the book of the open jobs is not complete yet.
const std::string_view list = R"lua(
local state, by_queue, queue, by_type, kind, limit, below = arg(), arg(), arg(), arg(), arg(), num(), arg()
local wanted = tonumber(state)
local books = {'o', 'f:4', 'f:5', 'f:6', 'f:7', 'f:8'}
if wanted then books = {wanted < 4 and 'o' or 'f:' .. state} end
if books[1] == 'o' then
  keep_book(5000, {})
  if call('EXISTS', P .. 'ob') == 1 then return {'*'} end
end
local look = math.max(limit, 500)
local from = below == '' and '+' or '(' .. below
local ids = {}
for _, book in ipairs(books) do
  for _, id in ipairs(call('ZREVRANGEBYLEX', P .. book, from, '-', 'LIMIT', 0, look)) do ids[#ids + 1] = id end
end
table.sort(ids, function(a, b) return a > b end)
local function type_of(id)
  local what = call('HGET', P .. 'd', id)
  local size, start = string.match(what, '^(%d+):()')
  return string.sub(what, start, start + size - 1)
end
local found, many_found = {''}, 0
for i, id in ipairs(ids) do
  local packed = call('HGET', P .. 'j', id)
  local j = packed and {struct.unpack(FORM, packed)}
  if j and (not wanted or seen(j) == wanted) and (by_queue == '0' or j[Q] == queue) and
     (by_type == '0' or type_of(id) == kind) then
    show(found, id, j, packed)
    many_found = many_found + 1
  end
  if many_found >= limit or i == look then
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
    local ready = call('ZCOUNT', P .. line .. q, '-inf', now)
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
