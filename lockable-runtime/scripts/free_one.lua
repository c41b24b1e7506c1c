--[[
Ends the hold of an attempt, and no other's, without regard to its waiters: they find the lock free when
they ask. For a lock whose slot moves between two nodes of a cluster, where its queue may be at the other.

KEYS[1]  the lock
ARGV[1]  the owner token of the attempt
ARGV[2]  for how many milliseconds the lock has to stay taken; 0 or nothing for none
Output   1 released; 0 no one holds the lock; -1 another holder, or other data, has it

Idempotent because a token is never used for two acquisitions.
]]
local lock, token, life = KEYS[1], ARGV[1], ARGV[2] or '0'
local owner = redis.pcall('GET', lock)
if type(owner) == 'table' then
  return string.sub(owner.err, 1, 9) == 'WRONGTYPE' and -1 or owner
end
if is_held(owner, token) then
  if life == '0' then
    return redis.call('DEL', lock)
  end
  leave_taken(lock, token, life)
  return 1
end
if left_taken(owner) == token then
  return 1
end
return owner and -1 or 0
