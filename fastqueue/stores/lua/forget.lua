#!lua flags=allow-oom
-- ids.. -> for each: 1 if it was a failed job
local answers = {}
while place < #ARGV do
  local id = argument()
  local job = call('HMGET', key('job:' .. id), 'lane', 'alone')
  local failed = job[1] and take('failed', job[1], member_of(id, job[2]))
  if failed then
    delete(id)
  end
  table.insert(answers, failed and 1 or 0)
end
return answers
