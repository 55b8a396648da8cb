#!lua flags=no-writes
-- now -> for each lane: its name, how many wait, are delayed, held, failed, and the least run_at of those that wait
local now = number()
local counts = {}

local function of(lane)
  counts[lane] = counts[lane] or {lane, 0, 0, 0, 0, false}
  return counts[lane]
end

local function add(count, run_at)
  if run_at > now then
    count[3] = count[3] + 1
  else
    count[2] = count[2] + 1
    count[6] = math.min(count[6] or run_at, run_at)
  end
end

for _, lane in ipairs(call('SMEMBERS', key('waiting'))) do
  local line, count = key('waiting:' .. lane), of(lane)
  count[2] = call('ZCOUNT', line, '-inf', now)
  count[3] = call('ZCARD', line) - count[2]
  count[6] = count[2] > 0 and tonumber(call('ZRANGE', line, 0, 0, 'WITHSCORES')[2])
end
for _, lane in ipairs(call('SMEMBERS', key('held'))) do
  local line, count = key('held:' .. lane), of(lane)
  count[4] = call('ZCOUNT', line, '(' .. ARGV[1], '+inf')
  -- Those whose hold is over wait, though no claim has put them back yet.
  for _, member in ipairs(call('ZRANGE', line, '-inf', now, 'BYSCORE')) do
    add(count, tonumber(call('HGET', key('job:' .. id_of(member)), 'run_at')))
  end
end
for _, lane in ipairs(call('SMEMBERS', key('leaving'))) do
  local count = of(lane)
  count[4] = count[4] + call('ZCARD', key('leaving:' .. lane))
end
for _, lane in ipairs(call('SMEMBERS', key('failed'))) do
  of(lane)[5] = call('ZCARD', key('failed:' .. lane))
end

local answers = {}
for _, count in pairs(counts) do
  table.insert(answers, count)
end
return answers
