--[[
Counts up a fence counter, and seeds it with the time where it is below that. Seeds others with the same time.

KEYS[1]   the fence counter
KEYS[2…]  other fence counters, only where one server has all slots
ARGV[1]   their TTL in milliseconds, counted from the time that their token stands for; a longer one stays
Output    the fencing token: the server's time in microseconds, or more where the counter is ahead of it; with other
          counters, unless the first is ahead, a list: the token, and which of the others (from 1) were left alone

Not idempotent: each run returns a larger token, and a counter never sinks. Numbers of Lua are exact to
53 bits, which are enough for the microseconds of 285 years, but print 14 digits.

Another counter is left alone if it is not behind the time, or if there are other data. `COPY` takes the TTL along and
replies a number: it costs the server a third less than `SET`, whose status becomes a table.

See "Where do fencing tokens come from, and what seeds a fence counter (`TIME`)?" in DESIGN.md.
]]
local call, fence, life = redis.call, KEYS[1], ARGV[1]
local time = call('TIME')
local digits = time[1] .. string.sub('00000' .. time[2], -6)
local now, ttl = tonumber(digits), call('PTTL', fence)
local token = ttl == -2 and 0 or redis.pcall('INCR', fence)
if type(token) == 'table' then
  return token
end
if token >= 9007199254740992 then
  return redis.error_reply('ERR no fencing token can follow what is at the fence counter')
end
if token >= now then
  -- A counter that is ahead, because a clock was set back, is still there when the time has come up to it.
  local ahead = math.ceil((token - now) / 1000)
  call('PEXPIRE', fence, string.format('%.0f', math.max(ttl, life + ahead)))
  return token
end
if ttl > 600000 and ttl > tonumber(life) then
  life = string.format('%.0f', ttl)
end
call('SET', fence, digits, 'PX', life)
if #KEYS == 1 then
  return now
end
local least, reply, find = tonumber(life), {now}, string.find
local counts = call('MGET', unpack(KEYS, 2))
for n = 1, #counts do
  local other, count = KEYS[n + 1], counts[n]
  if not count then
    if call('COPY', fence, other) == 0 then
      reply[#reply + 1] = n
    end
  elseif #count ~= #digits or count >= digits or not find(count, '^[1-9]%d*$') then
    reply[#reply + 1] = n
  elseif call('PTTL', other) > least then
    call('SET', other, digits, 'KEEPTTL')
  else
    call('COPY', fence, other, 'REPLACE')
  end
end
return reply
