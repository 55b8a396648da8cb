#!lua flags=allow-oom
-- now failed_before portion -> how many failed jobs went, and 1 if there may be more to go
local now, before, portion = argument(), argument(), number()
call('ZREMRANGEBYSCORE', key('kinds'), '-inf', now)
local names = call('ZRANGE', key('windows'), '-inf', now, 'BYSCORE', 'LIMIT', 0, portion)
for _, name in ipairs(names) do
  call('ZREM', key('windows'), name)
  call('HDEL', key('tries'), name)
end
local gone = 0
for _, lane in ipairs(call('SMEMBERS', key('failed'))) do
  local line = key('failed:' .. lane)
  for _, member in ipairs(call('ZRANGE', line, '-inf', '(' .. before, 'BYSCORE', 'LIMIT', 0, portion - gone)) do
    take('failed', lane, member)
    delete(id_of(member))
    gone = gone + 1
  end
end
return {gone, (gone == portion or #names == portion) and 1 or 0}
