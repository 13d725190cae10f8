// Units of work: several calls that happen together or not at all.
#include "scripts.hpp"

namespace holdfast::redis::lua {

// What a call writes waits; what it takes is taken for those after it.
const std::string_view unit_rules = R"lua(
local waiting, taken = {}, {}
write = function(what) waiting[#waiting + 1] = what end
local function once(key, ask)
  if taken[key] then return 0 end
  local answer = ask()
  if answer == 1 then taken[key] = true end
  return answer
end
)lua";

// 1 to commit, 0 to try; then per call its name, the number of its arguments, the answer that it was given, packed, or
// nothing, and the arguments. All answers are made anew. Those that differ from what was said end the unit: gives the
// name of such a call. A try writes nothing and gives the last answer, packed and as it is; a commit gives 1.
const std::string_view unit = R"lua(
local calls = {
  enqueue = enqueue,
  settle = function()
    local many_settled = math.floor((stop - at) / 4)
    local answers = settle({})
    write(function() keep_book(many_settled, {}) end)
    return answers
  end,
  claim = function() return once('claim ' .. ARGV[at + 1], key_claim) end,
  receive = function() return once('receive ' .. ARGV[at + 1] .. ARGV[at + 2], receive) end,
  complete = key_complete,
  append = function()
    local from, to = at, stop
    write(function()
      at, stop = from, to
      append_all()
    end)
    return 1
  end,
}
local commits = arg() == '1'
local answer, packed
while at < #ARGV do
  local name, size, said = arg(), num(), arg()
  local next_one = at + size
  stop = next_one
  answer = calls[name]()
  packed = cmsgpack.pack(answer)
  if said ~= '' and said ~= packed then return name end
  at = next_one
end
if not commits then return {packed, answer} end
write_all()
for _, each in ipairs(waiting) do each() end
return 1
)lua";

} // namespace holdfast::redis::lua
