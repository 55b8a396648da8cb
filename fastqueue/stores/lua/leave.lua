#!lua flags=allow-oom
-- to now limit -> the portion's number, and for each of its jobs: id, fields; or 0 and the store that the one on its
-- way goes to; or nothing
local to, now, limit = argument(), number(), number()
local moving = call('HMGET', key('moving'), 'number', 'to')
if moving[2] and moving[2] ~= to then
  return {0, moving[2]}
end

-- Put one job aside, unless a claim holds it; its fields say when it failed, since its shelf no longer does.
local function put_aside(id)
  local name = key('job:' .. id)
  local job = call('HMGET', name, 'lane', 'alone')
  local lane, alone = job[1], job[2]
  local member = member_of(id, alone)
  local held = call('ZSCORE', key('held:' .. lane), member)
  if held and tonumber(held) > now then
    return 0
  end
  local failed_at = call('ZSCORE', key('failed:' .. lane), member)
  if failed_at then
    call('HSET', name, 'failed_at', failed_at)
    take('failed', lane, member)
  else
    let_go(id, lane, alone)
  end
  put('leaving', lane, member, id)
  return 1
end

if not moving[2] then
  local found, at = 0, 0
  repeat
    local ids = call('ZRANGE', key('ids'), at, at + limit - 1)
    for i = 1, #ids do
      found = found + (found < limit and put_aside(ids[i]) or 0)
    end
    at = at + limit
  until found == limit or #ids < limit
  if found == 0 then
    return {}
  end
  moving[1] = call('HINCRBY', key('moving'), 'number', 1)
  call('HSET', key('moving'), 'to', to)
end

local ids = {}
for _, lane in ipairs(call('SMEMBERS', key('leaving'))) do
  for _, member in ipairs(call('ZRANGE', key('leaving:' .. lane), 0, -1)) do
    table.insert(ids, id_of(member))
  end
end
table.sort(ids)
local answers = {}
for _, id in ipairs(ids) do
  table.insert(answers, {id, call('HGETALL', key('job:' .. id))})
end
return {tonumber(moving[1]), answers}
