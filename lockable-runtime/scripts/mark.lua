--[[
Marks fence counters of trials, and looks whether they were marked.

KEYS[1]   the lock of a trial, which no one holds
KEYS[2…]  its fence counter, then those of other trials, if any
KEYS[#]   the queue of the first one
ARGV[1]   the TTL of the marks in milliseconds
Output    1 all were marked; 0 not all

Idempotent, but for the output: marks replace marks.

See "How is a sharding proxy detected?" in DESIGN.md.
]]
local were_marked = 1
for n = 2, #KEYS - 1 do
  if not redis.call('SET', KEYS[n], '', 'PX', ARGV[1], 'GET') then
    were_marked = 0
  end
end
return were_marked
