#!lua flags=no-writes
-- now name -> the tries in its window and when it ends; nothing: no window runs
local now, name = number(), argument()
local ends = tonumber(call('ZSCORE', key('windows'), name) or now)
if ends > now then
  return {tonumber(call('HGET', key('tries'), name)), ends}
end
return {}
