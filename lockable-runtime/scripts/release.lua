--[[
Frees a lock that the attempt holds, and nobody else's.

KEYS[1]  the lock
ARGV[1]  the owner token of the attempt
Output   1 released; 0 nobody holds the lock; -1 another holder has it

Idempotent because a token is never used for two acquisitions.
]]
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
  redis.call('DEL', KEYS[1])
  return 1
end
return owner and -1 or 0
