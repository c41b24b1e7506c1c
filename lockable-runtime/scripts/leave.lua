--[[
Takes an attempt out of the queue of a lock; a lock that is its own meanwhile is handed off.

KEYS[1]  the lock
KEYS[2]  its fence counter
KEYS[3]  its queue
ARGV[1]  the owner token of the attempt
ARGV[2]  the entry of the attempt in the queue
Output   1 the attempt had the lock, which was handed off or freed; 0 it did not have it

Idempotent because nothing is found a second time.
]]
local left = redis.pcall('LREM', KEYS[3], '0', ARGV[2])
local owner = redis.pcall('GET', KEYS[1])
if is_held(owner, ARGV[1]) then
  local head = redis.pcall('LPOP', KEYS[3])
  -- In a slot that moves key by key, a queue that has just become empty is an error: there is no other waiter.
  hand_off(KEYS[1], KEYS[2], KEYS[3], '', type(head) == 'string' and head or false)
  return 1
end
local token, is_longer = left_taken(owner)
if is_longer and not redis.pcall('LINDEX', KEYS[3], '0') then
  local rest = rest_of(KEYS[1], owner)
  if rest > 0 then
    leave_taken(KEYS[1], token, rest)
  else
    redis.call('DEL', KEYS[1])
  end
end
if type(left) == 'table' and string.sub(left.err, 1, 9) ~= 'WRONGTYPE' then
  return left
end
return 0
