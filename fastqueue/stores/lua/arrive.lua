#!lua
-- origin number, then for each job: id lane run_at keys.. failed_at.. fields.. -> 1 if they had not been here before
local origin, portion = argument(), number()
if portion <= tonumber(call('HGET', key('arrived'), origin) or 0) then
  return 0
end

local jobs, last = {}, 0
while place < #ARGV do
  local job = {id = argument(), lane = argument(), run_at = argument()}
  local first, end_of = fields()
  job.unique = first <= end_of and ARGV[first]
  first, end_of = fields()
  job.failed_at = first <= end_of and ARGV[first]
  job.first, job.last = fields()
  job.taken = call('EXISTS', key('job:' .. job.id)) == 1
  last = math.max(last, tonumber(job.id))
  table.insert(jobs, job)
end
-- Before any new id is given, so that none is one of theirs.
if last > tonumber(call('GET', key('seq')) or 0) then
  call('SET', key('seq'), string.format('%.0f', last))
end

for _, job in ipairs(jobs) do
  local id = job.taken and new_id() or job.id
  local name = key('job:' .. id)
  call('HSET', name, 'lane', job.lane, 'run_at', job.run_at, unpack(ARGV, job.first, job.last))
  call('ZADD', key('ids'), id, id)
  if job.unique and call('HSETNX', key('waits:' .. kind_of(job.lane)), job.unique, id) == 1 then
    call('HSET', name, 'key', job.unique)
  end
  local alone = call('HGET', name, 'alone')
  if job.failed_at then
    put('failed', job.lane, member_of(id, alone), job.failed_at)
  else
    queue_up(id, job.lane, alone)
  end
end
call('HSET', key('arrived'), origin, portion)
return 1
