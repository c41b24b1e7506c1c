--[[
Acquires a permit of a key, where one is free and no one waits for the next.

KEYS[1 .. n]  the permits
KEYS[n + 1]   their queue
ARGV[1]       the owner token of the attempt
ARGV[2]       for how many milliseconds it acquires the permit
Output        n: the n-th is acquired, now or before; 0 none is free, or some wait for the next; the value of the
              first where that is paused

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
if redis.call('EXISTS', KEYS[count + 1]) == 0 then
  for number = 1, count do
    -- Other data in its place are no owner, and stay.
    if not owners[number] and redis.call('SET', KEYS[number], token, 'NX', 'PX', ARGV[2]) then
      return number
    end
  end
end
return string.match(owners[1] or '', '^|.*') or 0
