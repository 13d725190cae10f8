#include <holdfast/redis/scripted_server.hpp>

namespace holdfast::redis::lua {

extern const std::string_view prepare;

// KEYS[1]: meta. ARGV: schema version, a marker for new data, the kind of plugin. Gives the marker of the data.
// Stores were the first, and did not write their kind.
const std::string_view prepare = R"lua(
if redis.pcall('ZMSCORE', KEYS[1] .. ':none', 'x').err then return redis.error_reply('HFOLD') end
local found = redis.call('HGET', KEYS[1], 'schema')
if found and (redis.call('HGET', KEYS[1], 'kind') or 'store') ~= ARGV[3] then return redis.error_reply('HFKIND') end
if found and tonumber(found) > tonumber(ARGV[1]) then return redis.error_reply('HFNEWER ' .. found) end
redis.call('HSETNX', KEYS[1], 'schema', ARGV[1])
if ARGV[3] ~= 'store' then redis.call('HSETNX', KEYS[1], 'kind', ARGV[3]) end
redis.call('HSETNX', KEYS[1], 'marker', ARGV[2])
return redis.call('HGET', KEYS[1], 'marker')
)lua";

// KEYS[1]: meta. ARGV[1]: the marker, then what the script takes. Times are microseconds; numbers stay below 2^53.
// Tokens never fall behind the clock, so they grow even past a loss of what was written last.
const std::string_view prelude = R"lua(
local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
if call('HGET', KEYS[1], 'marker') ~= ARGV[1] then return redis.error_reply('HFERASED data') end
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local FAR = 9000000000000000
local at, stop = 1, #ARGV
local function arg() at = at + 1; return ARGV[at] end
local function num() at = at + 1; return tonumber(ARGV[at]) end
local function text(n) return string.format('%.0f', n) end
local function later(span) return math.min(now + span, FAR) end
local function newer(token) return math.max((tonumber(token) or 0) + 1, now) end
local function next_token()
  local token = text(newer(call('HGET', KEYS[1], 'token')))
  call('HSET', KEYS[1], 'token', token)
  return token
end
-- Whoever may not publish gives no hints, and works on.
local function hint(queue) redis.pcall('PUBLISH', P .. 'hints', queue) end
-- For memory alone: what counts is the time that is written in the value.
local function forget_at(key, time) call('PEXPIREAT', key, text(math.floor(time / 1000) + 1000)) end
)lua";

} // namespace holdfast::redis::lua
