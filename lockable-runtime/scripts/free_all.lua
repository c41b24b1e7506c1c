--[[
Frees many locks at once: those that their attempts hold and that have no waiter. The others are left as
they are, for release.lua to hand off, or to say who has them.

KEYS[n]           a lock
KEYS[#ARGV + n]   its queue
ARGV[n]           the owner token of the attempt that should hold it
Output            for each lock: 1 free now, 0 left as it is

Idempotent because a token is never used for two acquisitions.

Each command is about all locks, because calling one costs more than most of what it does.
]]
local count = #ARGV
local owners = redis.call('MGET', unpack(KEYS, 1, count))
local has_waiters = redis.call('EXISTS', unpack(KEYS, count + 1)) > 0
local outcomes, freed = {}, {}
for n, token in ipairs(ARGV) do
  outcomes[n] = 0
  if is_held(owners[n], token) and not (has_waiters and redis.call('EXISTS', KEYS[count + n]) > 0) then
    outcomes[n] = 1
    freed[#freed + 1] = KEYS[n]
  end
end
if freed[1] then
  redis.call('DEL', unpack(freed))
end
return outcomes
