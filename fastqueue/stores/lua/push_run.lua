#!lua
-- now channel schedule lane run_at fields.. -> 1 if the job was pushed, the run that is recorded
local now, channel, schedule, lane, run_at = number(), argument(), argument(), argument(), number()
local recorded = call('ZSCORE', key('runs'), schedule)
if recorded and run_at <= tonumber(recorded) then
  return {0, tonumber(recorded)}
end
local _, new = push(lane, ARGV[place], false, fields())
call('ZADD', key('runs'), run_at, schedule)
if new == 1 and run_at <= now then
  tell(channel)
end
return {new, run_at}
