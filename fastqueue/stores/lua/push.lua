#!lua
-- now channel, then for each job: lane run_at moves fields.. -> for each: id, 1 if it is new
local now, channel = number(), argument()
local answers, due = {}, false
while place < #ARGV do
  local lane, run_at, moves = argument(), argument(), argument() == '1'
  local id, new, has = push(lane, run_at, moves, fields())
  due = due or (has and tonumber(run_at) <= now)
  table.insert(answers, id)
  table.insert(answers, new)
end
if due then
  tell(channel)
end
return answers
