--[[
Reads who has a lock and how long it lasts.

KEYS[1]  the lock
Output   nil when no one has it; otherwise what its holder wrote there, and for how many
         milliseconds it lasts, -1 when without an end

Changes nothing.
]]
local owner = redis.call('GET', KEYS[1])
if owner then
  return {owner, redis.call('PTTL', KEYS[1])}
end
return nil
