#!lua flags=allow-oom
-- kind until id token keys.. -> 1 if its claim still had the job
local kind, till, id, token = argument(), argument(), argument(), argument()
local first, last = fields()
call('ZADD', key('kinds'), 'GT', till, kind)
return give_back(id, token, first <= last and ARGV[first] or nil)
