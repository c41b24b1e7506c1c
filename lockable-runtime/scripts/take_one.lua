--[[
Acquires a permit of a key, where one is free and its queue is empty.

KEYS[1 .. n]  the permits
KEYS[n + 1]   their queue
ARGV[1]       the owner token of the attempt
ARGV[2]       for how many milliseconds it acquires the permit
Output        n: the n-th is acquired, now or before; 0 none is free; -1 one is free, and the queue has entries: those
              may be of processes that have died, so one_of.lua looks who of them can be reached; the value of the first
              where that is no holder's

Stands in the place of SET NX GET: the command behind it counts up the fence counter.
Idempotent because it finds its own permit.
]]
local token, count = ARGV[1], #KEYS - 1
local owners = redis.call('MGET', unpack(KEYS, 1, count))
for number = 1, count do
  if owners[number] == token then
    return number
  end
end
local queued = redis.call('EXISTS', KEYS[count + 1]) == 1
for number = 1, count do
  if not owners[number] then
    -- Other data in its place are no owner, and stay.
    if queued and redis.call('EXISTS', KEYS[number]) == 0 then
      return -1
    end
    if not queued and redis.call('SET', KEYS[number], token, 'NX', 'PX', ARGV[2]) then
      return number
    end
  end
end
return obstacle(owners[1]) or 0
