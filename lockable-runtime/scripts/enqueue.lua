--[[
Acquires a lock whose turn has come to the attempt, or queues the attempt.

KEYS[1]  the lock
KEYS[2]  its fence counter
KEYS[3]  its queue
ARGV[1]  the owner token of the attempt
ARGV[2]  for how many milliseconds it acquires the lock
ARGV[3]  the entry of the attempt in the queue
ARGV[4]  how long the queue lives at least, in milliseconds
ARGV[5]  how long the fence counter lives at least, in milliseconds, where that is longer than usual
Output   1, the first fencing token and the time in microseconds: acquired, now or before; otherwise
         0, for how many milliseconds the lock lasts, -1 when without an end, and the value of the lock
         where that is no holder's

A lock that is reserved for the attempt is acquired. One that no one has, or that stays taken for its waiters only, is
handed off to the first of them.
Idempotent because an attempt is in the queue once, and finds its own lock.
]]
local lock, fence, queue, token, entry = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[3]

local function lengthen_fence_life()
  if ARGV[5] then
    redis.call('PEXPIRE', fence, ARGV[5], 'GT')
  end
end

local owner = redis.call('GET', lock)
local is_own = owner == token
local _, is_longer = left_taken(owner)
if is_longer and rest_of(lock, owner) <= 0 then
  owner = false
end
local head = not owner and redis.pcall('LINDEX', queue, '0')
if type(head) == 'table' then
  return at('queue', head)
end
if head and head ~= entry then
  redis.call('LPOP', queue)
  owner = hand_off(lock, fence, queue, token, head)
end
if not owner or owner == token then
  if is_own then
    -- A full server refuses the first write of a script alone, and this one needs no memory.
    redis.call('PEXPIRE', lock, ARGV[2], 'GT')
  end
  local now = now_in_micros()
  local first, failed = reserve(fence, now)
  if failed then
    if owner and not is_own then
      put_back(queue, entry)
    end
    return failed
  end
  lengthen_fence_life()
  if not is_own then
    redis.call('SET', lock, token, 'PX', ARGV[2])
    if head then
      redis.call('LREM', queue, '0', entry)
    end
  end
  return {1, first, now}
end
lengthen_fence_life()
local rest = rest_of(lock, owner)
local failed = join(queue, entry, ARGV[4])
reserve_for_waiters(lock, owner)
return failed or {0, rest, obstacle(owner)}
