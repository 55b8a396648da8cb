#!lua flags=allow-oom
-- name
call('ZREM', key('windows'), argument())
call('HDEL', key('tries'), ARGV[1])
