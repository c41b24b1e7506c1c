--[[
Counts up a fence counter, and seeds it with the time where it is below that.

KEYS[1]  the fence counter
ARGV[1]  its TTL in milliseconds, counted from the time that its token stands for; a longer one stays
Output   the fencing token: the server's time in microseconds, or more where the counter is ahead of it

Not idempotent: each run returns a larger token, and a counter never sinks. Numbers of Lua are exact to
53 bits, which are enough for the microseconds of 285 years, but print 14 digits.

Mostly there is no counter yet, so it is made first, which takes two calls.

See "Why does the server's own `TIME` seed a fence counter?" in DESIGN.md.
]]
local fence, life = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now, digits = time[1] * 1000000 + time[2], time[1] .. string.sub('00000' .. time[2], -6)
local former = redis.pcall('SET', fence, digits, 'NX', 'GET', 'PX', life)
if not former then
  return now
end
local token = type(former) == 'table' and former or redis.pcall('INCR', fence)
if type(token) == 'table' then
  return token
end
if token >= 9007199254740992 then
  return redis.error_reply('ERR no fencing token can follow what is at the fence counter')
end
-- A counter that is ahead, because a clock was set back, is still there when the time has come up to it.
local ahead = math.max(0, math.ceil((token - now) / 1000))
life = string.format('%.0f', math.max(redis.call('PTTL', fence), life + ahead))
if token >= now then
  redis.call('PEXPIRE', fence, life)
  return token
end
redis.call('SET', fence, digits, 'PX', life)
return now
