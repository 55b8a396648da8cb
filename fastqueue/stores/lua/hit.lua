#!lua
-- now window_ms name -> the tries in its window, this one counted, and when it ends
local now, window, name = number(), number(), argument()
local ends = tonumber(call('ZSCORE', key('windows'), name) or now)
if ends <= now then
  ends = now + window
  call('ZADD', key('windows'), ends, name)
  call('HDEL', key('tries'), name)
end
return {call('HINCRBY', key('tries'), name, 1), ends}
