#!lua
-- now version -> every version told of, and when it was last
call('ZADD', key('zones'), argument(), argument())
return call('ZRANGE', key('zones'), 0, -1, 'WITHSCORES')
