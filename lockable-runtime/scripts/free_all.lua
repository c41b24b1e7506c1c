--[[
Frees many locks at once: those that their attempts hold and that have no waiter. The others are left as
they are, for release.lua to hand off, or to say who has them.

KEYS[2n - 1]  a lock
KEYS[2n]      its queue
ARGV[n]       the owner token of the attempt that should hold it
Output        for each lock: 1 free now, 0 left as it is

Idempotent because a token is never used for two acquisitions.
]]
local outcomes = {}
for n, token in ipairs(ARGV) do
  local lock, queue = KEYS[2 * n - 1], KEYS[2 * n]
  if redis.pcall('GET', lock) == token and not redis.pcall('LINDEX', queue, '0') then
    outcomes[n] = redis.call('DEL', lock)
  else
    outcomes[n] = 0
  end
end
return outcomes
