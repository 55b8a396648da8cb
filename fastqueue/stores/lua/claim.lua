#!lua flags=allow-oom
-- now token limit kinds.. queues..
-- -> when the next job comes due that it saw, and as JSON for each job taken: id, its fields as they were before
-- Without queues every queue is one line.
local now, token, limit = number(), argument(), number()

local kinds, held = {}, {}
for at = 1, number() do
  kinds[argument()] = true
end
local rank_of
for at = 1, number() do
  rank_of = rank_of or {}
  local queue = argument()
  rank_of[queue] = rank_of[queue] or at
end

-- Jobs whose hold is over wait again, so that those on the shelf of the held ones are those that count for limits.
-- They keep the token, by which their claim may still settle them.
local function lapse(lane)
  for _, member in ipairs(call('ZRANGE', key('held:' .. lane), '-inf', now, 'BYSCORE')) do
    local id = id_of(member)
    local alone = call('HGET', key('job:' .. id), 'alone')
    release(id, lane, alone)
    queue_up(id, lane, alone)
  end
end

for _, lane in ipairs(call('SMEMBERS', key('held'))) do
  local kind = kind_of(lane)
  if kinds[kind] then
    lapse(lane)
    held[kind] = (held[kind] or 0) + call('ZCARD', key('held:' .. lane))
  end
end

local later = false
local function comes_due(moment)
  later = math.min(later or moment, moment)
end

-- Which alone keys of a kind are held, as far as that was asked.
local keys_of = {}

local function is_held(lane, alone)
  if lane.keys[alone] == nil then
    lane.keys[alone] = call('SISMEMBER', key('alone:' .. lane.kind), alone) == 1
  end
  return lane.keys[alone]
end

local function is_full(lane)
  return lane.at_once > 0 and (held[lane.kind] or 0) >= lane.at_once
end

-- Go on to the lane's next due job whose key nobody holds; none: lane.member is nil. It is read in pieces: its
-- head alone, then as many as are wanted; a lane of keys may need more, and they grow.
local function advance(lane)
  while true do
    lane.at = lane.at + 2
    if not lane.piece[lane.at] and #lane.piece == 2 * lane.size then
      lane.read = lane.read + lane.size
      lane.size = math.min(math.max(limit, 4 * lane.size), 4096)
      lane.piece = call('ZRANGE', lane.line, lane.read, lane.read + lane.size - 1, 'WITHSCORES')
      lane.at = 1
    end
    lane.member, lane.run_at = lane.piece[lane.at], tonumber(lane.piece[lane.at + 1])
    if lane.member and lane.run_at > now then
      comes_due(lane.run_at)
      lane.member = nil
    end
    if not (lane.member and lane.by_key and is_held(lane, alone_of(lane.member))) then
      return
    end
  end
end

local lanes = {}
for _, name in ipairs(call('SMEMBERS', key('waiting'))) do
  local mode, queue, kind = parts(name)
  local rank = rank_of and rank_of[queue] or not rank_of and 1
  if kinds[kind] and rank then
    local line = key('waiting:' .. name)
    keys_of[kind] = keys_of[kind] or {}
    local lane = {
      name = name, kind = kind, rank = rank, line = line,
      at_once = math.floor(mode / 2), by_key = mode % 2 == 1, keys = keys_of[kind],
      piece = call('ZRANGE', line, 0, 0, 'WITHSCORES'), size = 1, read = 0, at = -1,
    }
    local back = tonumber(call('ZSCORE', key('kinds'), kind) or now)
    if back > now then
      comes_due(math.max(back, tonumber(lane.piece[2])))
    elseif not is_full(lane) then
      advance(lane)
      table.insert(lanes, lane)
    end
  end
end

local function is_before(one, other)
  if one.rank ~= other.rank then
    return one.rank < other.rank
  end
  if one.run_at ~= other.run_at then
    return one.run_at < other.run_at
  end
  return one.member < other.member
end

-- The walk of the line. What it takes leaves the lanes only afterwards, since they are read by place.
local taken = {}
while #taken < limit do
  local first
  for _, lane in ipairs(lanes) do
    if lane.member and is_full(lane) then
      lane.member = nil
    elseif lane.member and (not first or is_before(lane, first)) then
      first = lane
    end
  end
  if not first then
    break
  end
  if not (first.by_key and is_held(first, alone_of(first.member))) then
    table.insert(taken, {first, first.member})
    held[first.kind] = (held[first.kind] or 0) + 1
    if first.by_key then
      first.keys[alone_of(first.member)] = true
    end
  end
  advance(first)
end

local answers = {}
for _, found in ipairs(taken) do
  local lane, member = found[1], found[2]
  local id = id_of(member)
  local name = key('job:' .. id)
  local before = call('HGETALL', name)
  local job = {}
  for at = 1, #before, 2 do
    job[before[at]] = before[at + 1]
  end
  take('waiting', lane.name, member)
  put('held', lane.name, member, now + job.hold_ms)
  call('HSET', name, 'token', token, 'attempts', job.attempts + 1)
  if job.key then
    call('HDEL', name, 'key')
    call('HDEL', key('waits:' .. lane.kind), job.key)
  end
  if job.alone then
    call('SADD', key('alone:' .. lane.kind), job.alone)
  end
  table.insert(answers, {id, before})
end
-- One text, since a client takes longer to read many than a server to write one.
return {later, cjson.encode(answers)}
