--[[
The begin of a release, and the most frequent end of a hold: nobody waits, and the lock does not have
to stay taken. It is in front of everything else because that begins with making its functions, a
fourth of what such a release costs the server.

KEYS, ARGV and Output as release.lua says, which goes on with what was found: the owner, and the first
who waits where the lock is to go on.
]]
local owner, head = redis.pcall('GET', KEYS[1]), nil
local goes_on = owner == ARGV[1] and (ARGV[2] or '0') == '0'
if goes_on then
  head = redis.pcall('LINDEX', KEYS[3], '0')
  if not head and not ARGV[3] then
    return redis.call('DEL', KEYS[1])
  end
end

