#!lua flags=no-writes
-- kind limit offset -> for each failed job: id, nothing, failed_at, fields; the latest first. An empty kind: any.
local kind, limit, offset = argument(), number(), number()
local found = {}
for _, lane in ipairs(call('SMEMBERS', key('failed'))) do
  if kind == '' or kind == kind_of(lane) then
    local line = call('ZRANGE', key('failed:' .. lane), 0, offset + limit - 1, 'REV', 'WITHSCORES')
    for at = 1, #line, 2 do
      table.insert(found, {id_of(line[at]), tonumber(line[at + 1])})
    end
  end
end
table.sort(found, function(one, other)
  if one[2] ~= other[2] then
    return one[2] > other[2]
  end
  return one[1] > other[1]
end)
local answers = {}
for at = offset + 1, math.min(#found, offset + limit) do
  local id, failed_at = found[at][1], found[at][2]
  table.insert(answers, {id, false, failed_at, call('HGETALL', key('job:' .. id))})
end
return answers
