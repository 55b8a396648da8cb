#!lua flags=allow-oom
-- for each run that has ended: id token ending at fields.. -> for each: 1 if its claim still had the job
local answers = {}
while place < #ARGV do
  local id, token, ending, at = argument(), argument(), argument(), argument()
  local first, last = fields()
  local lane, alone = of_claim(id, token)
  if lane then
    local job = key('job:' .. id)
    let_go(id, lane, alone)
    if ending == 'gone' then
      delete(id)
    else
      call('HDEL', job, 'error')
      call('HSET', job, unpack(ARGV, first, last))
      if ending == 'failed' then
        put('failed', lane, member_of(id, alone), at)
      else
        call('HSET', job, 'run_at', at)
        queue_up(id, lane, alone)
      end
    end
  end
  table.insert(answers, lane and 1 or 0)
end
return answers
