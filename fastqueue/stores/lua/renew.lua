#!lua flags=allow-oom
-- now until, then for each job: id token -> for each: 1 if it is still held by its claim
local now, till = number(), argument()
local answers = {}
while place < #ARGV do
  local id, token = argument(), argument()
  local lane, alone = of_claim(id, token)
  local member = member_of(id, alone)
  local held = lane and call('ZSCORE', key('held:' .. lane), member)
  local holds = held and tonumber(held) > now
  if holds then
    put('held', lane, member, till)
  end
  table.insert(answers, holds and 1 or 0)
end
return answers
