#!lua flags=no-writes
-- -> for each lane with waiting jobs: its name, when its first one is due
local answers = {}
for _, lane in ipairs(call('SMEMBERS', key('waiting'))) do
  table.insert(answers, lane)
  table.insert(answers, tonumber(call('ZRANGE', key('waiting:' .. lane), 0, 0, 'WITHSCORES')[2]))
end
return answers
