#!lua flags=no-writes
-- kind queue since at id portion -> for each failed job: id, nothing, failed_at, fields; the latest first
-- An empty kind or queue: any. They failed at `since` or later, and stand behind the job that failed `at` with `id`.
local kind, queue, since, at, behind, portion = argument(), argument(), number(), number(), argument(), number()

-- How many of a lane's failed jobs are not behind that place, the latest first.
local function count_before(line)
  local low, high = 0, call('ZCARD', line)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local there = call('ZRANGE', line, middle, middle, 'REV', 'WITHSCORES')
    local failed_at = tonumber(there[2])
    if failed_at > at or (failed_at == at and id_of(there[1]) >= behind) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local found = {}
for _, lane in ipairs(call('SMEMBERS', key('failed'))) do
  local _, of_queue, of_kind = parts(lane)
  if (kind == '' or kind == of_kind) and (queue == '' or queue == of_queue) then
    local line = key('failed:' .. lane)
    local first = count_before(line)
    local jobs = call('ZRANGE', line, first, first + portion - 1, 'REV', 'WITHSCORES')
    for i = 1, #jobs, 2 do
      local failed_at = tonumber(jobs[i + 1])
      if failed_at < since then
        break
      end
      table.insert(found, {id_of(jobs[i]), failed_at})
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
for i = 1, math.min(#found, portion) do
  local id, failed_at = found[i][1], found[i][2]
  table.insert(answers, {id, false, failed_at, call('HGETALL', key('job:' .. id))})
end
return answers
