--[[
Looks whether a script finds at fence counters what commands have written there.

KEYS[1]   the lock of a trial, which no one holds
KEYS[2…]  its fence counter, then those of other trials, if any
KEYS[#]   the queue of the first one
ARGV[…]   what the commands have written, for each fence counter
Output    1 all is there; 0 it is not, so the keys are on several servers

Changes nothing.

See "How is a sharding proxy detected?" in DESIGN.md.
]]
for n, text in ipairs(ARGV) do
  if redis.call('GET', KEYS[n + 1]) ~= text then
    return 0
  end
end
return 1
