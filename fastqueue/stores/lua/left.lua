#!lua flags=allow-oom
-- number
local moving = call('HMGET', key('moving'), 'number', 'to')
if not moving[2] or moving[1] ~= argument() then
  return
end
for _, lane in ipairs(call('SMEMBERS', key('leaving'))) do
  for _, member in ipairs(call('ZRANGE', key('leaving:' .. lane), 0, -1)) do
    local id = id_of(member)
    local unique = call('HGET', key('job:' .. id), 'key')
    if unique then
      call('HDEL', key('waits:' .. kind_of(lane)), unique)
    end
    delete(id)
  end
  call('DEL', key('leaving:' .. lane))
end
call('DEL', key('leaving'))
call('HDEL', key('moving'), 'to')
