--[[
Raises the floor that the fencing tokens of a lock come from, and counts it up.

KEYS[1]  the floor
ARGV[1]  the least that the token may be: the server's time in microseconds
ARGV[2]  the TTL of the floor in milliseconds
Output   the fencing token

Not idempotent: each run gives a larger token, and a floor never sinks. Numbers of Lua keep 53 bits,
which are enough for the microseconds of 285 years.
]]
local counted = tonumber(redis.call('GET', KEYS[1]) or '0')
local token = math.max(counted + 1, tonumber(ARGV[1]))
redis.call('SET', KEYS[1], string.format('%.0f', token), 'PX', ARGV[2])
return token
