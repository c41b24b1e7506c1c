--[[
Ends the hold of an attempt, and no other's: the lock is handed off to the first waiter, or is free.

KEYS[1]  the lock
KEYS[2]  its fence counter
KEYS[3]  its queue
ARGV[1]  the owner token of the attempt
ARGV[2]  for how many milliseconds the lock has to stay taken; 0 or nothing for none
ARGV[3]  an entry of the same process to be queued behind the others, where there is one
ARGV[4]  the owner token of that entry
ARGV[5]  how long the queue lives at least, in milliseconds
ARGV[6]  for how many milliseconds the entry acquires the lock
Output   1 released; 0 no one holds the lock; -1 another holder, or other data, has it; when the lock
         is the entry's now: its first fencing token and the time in microseconds

Idempotent because a token is never used for two acquisitions.
]]
local lock, fence, queue, entry, successor = KEYS[1], KEYS[2], KEYS[3], ARGV[3], ARGV[4]

-- A waiter has marked the token: from here on `owner` is the token without the mark. `owner`, `hands_off` and `head`
-- are those of free.lua.
if owner ~= ARGV[1] and is_held(owner, ARGV[1]) then
  owner, hands_off = ARGV[1], (ARGV[2] or '0') == '0'
  head = hands_off and redis.pcall('LPOP', queue)
end

-- The turn is the entry's own, which this request acquires the lock for.
local function grant()
  local now = now_in_micros()
  local first = reserve(fence, now)
  if not first then
    put_back(queue, entry)
    redis.call('DEL', lock)
    return 1
  end
  redis.call('SET', lock, successor, 'PX', ARGV[6])
  return {first, now}
end

if type(owner) == 'table' then
  return string.sub(owner.err, 1, 9) == 'WRONGTYPE' and -1 or owner
end
if entry then
  if owner == successor then
    -- Another release may have reserved the lock for it, for a moment only. This is the first write, as in enqueue.lua.
    redis.call('PEXPIRE', lock, ARGV[6], 'GT')
    local now = now_in_micros()
    local first, failed = reserve(fence, now)
    return failed or {first, now}
  end
  if hands_off and (not head or head == entry) then
    return grant()
  end
  join(queue, entry, ARGV[5], true)
  reserve_for_waiters(lock, owner)
end
if hands_off then
  local turn = hand_off(lock, fence, queue, successor, head)
  if type(turn) == 'table' then
    return turn
  end
  return entry and turn == successor and grant() or 1
end
if owner == ARGV[1] then
  leave_taken(lock, owner, ARGV[2], type(redis.pcall('LINDEX', queue, '0')) == 'string')
  return 1
end
if left_taken(owner) == ARGV[1] then
  return 1
end
return owner and -1 or 0
