#!lua flags=no-writes
-- shelf kind queue after portion -> the last id looked at, and for each job that is asked for: id, held_until or
-- nothing, failed_at or nothing, fields. An empty shelf, kind or queue: any.
--
-- It goes through so many ids and no further, however few of them are asked for; fewer than a portion: it is the end.
local shelf, kind, queue, after, portion = argument(), argument(), argument(), number(), number()

local ids
if shelf == 'held' then
  ids = {}
  for _, name in ipairs({'held', 'leaving'}) do
    for _, lane in ipairs(call('SMEMBERS', key(name))) do
      for _, member in ipairs(call('ZRANGE', key(name .. ':' .. lane), 0, -1)) do
        if tonumber(id_of(member)) > after then
          table.insert(ids, id_of(member))
        end
      end
    end
  end
  table.sort(ids)
else
  ids = call('ZRANGE', key('ids'), '(' .. ARGV[4], '+inf', 'BYSCORE', 'LIMIT', 0, portion)
end

local answers = {}
local last = math.min(#ids, portion)
for at = 1, last do
  local job = call('HMGET', key('job:' .. ids[at]), 'lane', 'alone')
  local lane, member = job[1], member_of(ids[at], job[2])
  local _, of_queue, of_kind = parts(lane)
  if (kind == '' or kind == of_kind) and (queue == '' or queue == of_queue) then
    local held = call('ZSCORE', key('held:' .. lane), member)
    if call('ZSCORE', key('leaving:' .. lane), member) then
      held = '9007199254740992' -- no claim is to have it again
    end
    local failed = call('ZSCORE', key('failed:' .. lane), member)
    if shelf == '' or (shelf == 'held' and held) or (shelf == 'failed' and failed) then
      table.insert(answers, {ids[at], held, failed, call('HGETALL', key('job:' .. ids[at]))})
    end
  end
end
return {last == portion and ids[last] or false, answers}
