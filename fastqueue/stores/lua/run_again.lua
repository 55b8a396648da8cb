#!lua flags=allow-oom
-- at channel ids.. -> for each: 1 if it was a failed job
local at, channel = argument(), argument()
local answers, any = {}, false
while place < #ARGV do
  local id = argument()
  local job = call('HMGET', key('job:' .. id), 'lane', 'alone')
  local failed = job[1] and take('failed', job[1], member_of(id, job[2]))
  if failed then
    call('HSET', key('job:' .. id), 'run_at', at, 'attempts', 0)
    queue_up(id, job[1], job[2])
    any = true
  end
  table.insert(answers, failed and 1 or 0)
end
if any then
  tell(channel)
end
return answers
