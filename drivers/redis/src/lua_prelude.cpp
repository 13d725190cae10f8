#include <holdfast/redis/scripted_server.hpp>

namespace holdfast::redis::lua {

// KEYS[1]: meta. ARGV: schema version, a marker for new data, the kind of plugin. Gives the marker of the data. A step
// may use `call` and P, the prefix of all keys. A script is applied whole or not at all, whoever is killed meanwhile.
// Stores were the first, and did not write their kind.
std::string prepare(const script_library& of) {
    std::string text = R"lua(
if redis.pcall('ZMSCORE', KEYS[1] .. ':none', 'x').err then return redis.error_reply('HFOLD') end
local call = redis.call
local P = string.sub(KEYS[1], 1, -5)
local found = call('HGET', KEYS[1], 'schema')
if found and (call('HGET', KEYS[1], 'kind') or 'store') ~= ARGV[3] then return redis.error_reply('HFKIND') end
if found and tonumber(found) > tonumber(ARGV[1]) then return redis.error_reply('HFNEWER ' .. found) end
local version = tonumber(found or ARGV[1])
)lua";
    for (std::size_t i = 0; i < of.steps.size(); ++i)
        text += "if version == " + std::to_string(i + 1) + " then\n" + std::string(of.steps[i]) +
                "\nversion = " + std::to_string(i + 2) + "\nend\n";
    text += R"lua(
if version < tonumber(ARGV[1]) then return redis.error_reply('HFNOSTEP ' .. version) end
if found ~= tostring(version) then call('HSET', KEYS[1], 'schema', version) end
if ARGV[3] ~= 'store' then call('HSETNX', KEYS[1], 'kind', ARGV[3]) end
call('HSETNX', KEYS[1], 'marker', ARGV[2])
return call('HGET', KEYS[1], 'marker')
)lua";
    return text;
}

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
