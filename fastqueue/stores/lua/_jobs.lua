-- What every script is built on: where a job is, and how it gets from one place to another.
--
-- Each script stands behind this text. KEYS[1] is what all of the store's keys begin with.
--
--   job:<id>        a hash: lane, run_at, hold_ms, payload, attempts, and what else it has; no field: none
--   waiting:<lane>  a sorted set by run_at     \  the shelves; a job is on exactly one of them, and which lanes have
--   held:<lane>     a sorted set by held_until  | jobs on a shelf is a set of the shelf's name
--   failed:<lane>   a sorted set by failed_at   |
--   leaving:<lane>  a sorted set by id         /  on its way to another store
--   ids             a sorted set of all jobs by id; seq: the last id given
--   waits:<kind>    a hash: of each unique key that waits, the id of the job
--   alone:<kind>    a set: the alone keys of held jobs
--   kinds, runs     sorted sets: until when a kind is held back, the last run recorded of a schedule
--   zones           a sorted set: when an instance with a version of the zone data was last at work
--   moving          a hash: the number of the last portion that left for another store; to: it is still on its way
--   arrived         a hash: of each store that jobs came from, the number of the last portion
--   identity        what these keys have and no others; layout: the number of this arrangement
--   windows, tries  a sorted set: when a throttle's window ends; a hash: the tries in it
--
-- An id has 16 digits, so that of equal moments the job pushed first is the first. On a shelf the alone key follows
-- it, so that a claim can pass over keys without reading jobs. A lane is named mode:queue:kind, and a ":" in a name is
-- escaped before it gets here. A number that has to be exact is below 2^53; a token is never made a number.

local call = redis.call

local function key(name)
  return KEYS[1] .. name
end

-- Arguments one by one, from the first on; `fields` answers the places of as many as the next one says.
local place = 0

local function argument()
  place = place + 1
  return ARGV[place]
end

local function number()
  return tonumber(argument())
end

local function fields()
  local count = number()
  place = place + count
  return place - count + 1, place
end

-- Mode, queue and kind of a lane.
local function parts(lane)
  return string.match(lane, '^(%d+):([^:]*):(.*)$')
end

local function kind_of(lane)
  return (select(3, parts(lane)))
end

local function id_of(member)
  return string.sub(member, 1, 16)
end

local function alone_of(member)
  return string.sub(member, 17)
end

local function member_of(id, alone)
  return id .. (alone or '')
end

local function put(shelf, lane, member, moment)
  call('ZADD', key(shelf .. ':' .. lane), moment, member)
  call('SADD', key(shelf), lane)
end

local function take(shelf, lane, member)
  local line = key(shelf .. ':' .. lane)
  if call('ZREM', line, member) == 0 then
    return false
  end
  if call('EXISTS', line) == 0 then
    call('SREM', key(shelf), lane)
  end
  return true
end

-- The lane and the alone key of a job, while the claim with this token has it; nothing: it has not.
local function of_claim(id, token)
  local job = call('HMGET', key('job:' .. id), 'token', 'lane', 'alone')
  if job[1] == token then
    return job[2], job[3]
  end
end

-- End a hold; false: nobody holds the job.
local function release(id, lane, alone)
  if not take('held', lane, member_of(id, alone)) then
    return false
  end
  if alone then
    call('SREM', key('alone:' .. kind_of(lane)), alone)
  end
  return true
end

-- End a claim: the job is on no shelf and has no token.
local function let_go(id, lane, alone)
  if not release(id, lane, alone) then
    take('waiting', lane, member_of(id, alone))
  end
  call('HDEL', key('job:' .. id), 'token')
end

local function queue_up(id, lane, alone)
  put('waiting', lane, member_of(id, alone), call('HGET', key('job:' .. id), 'run_at'))
end

local function new_id()
  return string.format('%016.0f', call('INCR', key('seq')))
end

local function delete(id)
  call('DEL', key('job:' .. id))
  call('ZREM', key('ids'), id)
end

-- Keep a new job, unless one of its kind waits with its key: that one takes the new time if `moves`.
-- Answers the id, 1 for a new job, and whether a job has this run_at now. `first` to `last` are its fields' places.
local function push(lane, run_at, moves, first, last)
  local job = {}
  for field = first, last, 2 do
    job[ARGV[field]] = ARGV[field + 1]
  end
  local waits = key('waits:' .. kind_of(lane))
  local waiting = job.key and call('HGET', waits, job.key)
  if waiting then
    local there = call('HMGET', key('job:' .. waiting), 'lane', 'alone')
    local member = member_of(waiting, there[2])
    -- One that is on its way to another store stays as it is.
    moves = moves and not call('ZSCORE', key('leaving:' .. there[1]), member)
    if moves then
      call('HSET', key('job:' .. waiting), 'run_at', run_at)
      put('waiting', there[1], member, run_at)
    end
    return waiting, 0, moves
  end
  local id = new_id()
  call('HSET', key('job:' .. id), 'lane', lane, 'run_at', run_at, 'attempts', 0, unpack(ARGV, first, last))
  call('ZADD', key('ids'), id, id)
  put('waiting', lane, member_of(id, job.alone), run_at)
  if job.key then
    call('HSET', waits, job.key, id)
  end
  return id, 1, true
end

-- Tell whoever listens. That it is not allowed, or goes wrong, must not undo what was kept.
local function tell(channel)
  redis.pcall('PUBLISH', channel, '')
end

-- Undo a claim; answer 1 if it still had the job, which takes its unique key (nil: it had none) again unless another
-- waits with it by now.
local function give_back(id, token, unique)
  local lane, alone = of_claim(id, token)
  if not lane then
    return 0
  end
  local job = key('job:' .. id)
  let_go(id, lane, alone)
  call('HINCRBY', job, 'attempts', -1)
  if unique and call('HSETNX', key('waits:' .. kind_of(lane)), unique, id) == 1 then
    call('HSET', job, 'key', unique)
  end
  queue_up(id, lane, alone)
  return 1
end
