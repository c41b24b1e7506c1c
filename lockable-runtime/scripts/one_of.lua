--[[
Acquires a permit of a key whose turn has come to the attempt, or queues the attempt for the first that becomes
free; or takes the attempt out of the queue, and hands off what was granted to it.

KEYS[1 .. n]  the permits
KEYS[n + 1]   the fence counter of their slot
KEYS[n + 2]   their queue
ARGV[1]       the owner token of the attempt
ARGV[2]       for how many milliseconds it acquires a permit; 0 leaves
ARGV[3]       the entry of the attempt in the queue
ARGV[4]       how long the queue lives at least, in milliseconds
ARGV[5]       how long the fence counter lives at least, in milliseconds, where that is longer than usual
Output        n, the first fencing token and the time in microseconds: the n-th is acquired, now or before;
              otherwise 0, for how many milliseconds the first lasts that stays taken by a minimum hold, -1 where none
              does, and the value of the first where that is no holder's. Who leaves has 1 where a permit was handed off
              or freed, and 0 where it had none

What is free belongs to the waiters first. release.lua hands the permit that it ends off to the head of the queue, and
the wake-up has its name.
Idempotent because an attempt is in the queue once, and finds its own permit.
]]
local count = #KEYS - 2
local fence, queue = KEYS[count + 1], KEYS[count + 2]
local token, life, entry = ARGV[1], ARGV[2], ARGV[3]

if life == '0' then
  local left, had = redis.pcall('LREM', queue, '0', entry), 0
  for number, owner in ipairs(redis.call('MGET', unpack(KEYS, 1, count))) do
    if owner == token then
      had = 1
      hand_off(KEYS[number], fence, queue, '', redis.pcall('LPOP', queue))
    end
  end
  return had == 0 and type(left) == 'table' and at('queue', left) or had
end

local function lengthen_fence_life()
  if ARGV[5] then
    redis.call('PEXPIRE', fence, ARGV[5], 'GT')
  end
end

local function granted(number)
  local now = now_in_micros()
  local first, failed = reserve(fence, now)
  if failed then
    return failed
  end
  lengthen_fence_life()
  return {number, first, now}
end

local free, taken_for = {}, -1
local owners = redis.call('MGET', unpack(KEYS, 1, count))
for number, owner in ipairs(owners) do
  local lock, former, is_longer = KEYS[number], left_taken(owner)
  if owner == token then
    redis.call('PEXPIRE', lock, life, 'GT')
    return granted(number)
  end
  local rest = former and rest_of(lock, owner)
  if is_longer and rest <= 0 then
    free[#free + 1] = number
  elseif former and (taken_for < 0 or rest < taken_for) then
    taken_for = rest
  elseif not owner and redis.call('EXISTS', lock) == 0 then
    -- MGET says nothing of other data, which stay.
    free[#free + 1] = number
  end
end
for _, number in ipairs(free) do
  local lock, head, owner = KEYS[number], redis.pcall('LPOP', queue), false
  if type(head) == 'table' then
    return at('queue', head)
  end
  if head and head ~= entry then
    owner = hand_off(lock, fence, queue, token, head)
  end
  if not owner or owner == token then
    local reply = granted(number)
    if reply.err then
      if owner or head == entry then
        put_back(queue, entry)
      end
      return reply
    end
    redis.call('SET', lock, token, 'PX', life)
    if head and head ~= entry then
      -- Where nothing can be published, the head stays, and this attempt behind it.
      redis.call('LREM', queue, '0', entry)
    end
    return reply
  end
end
lengthen_fence_life()
return join(queue, entry, ARGV[4]) or {0, taken_for, obstacle(owners[1])}
