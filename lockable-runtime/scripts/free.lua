--[[
The most frequent end of a hold, in front of everything else that a release may be: nobody waits, and
the lock does not have to stay taken. It does without what follows, the making of its functions
included: a fourth of what a release costs the server.

KEYS, ARGV and Output as release.lua says. Whatever is not as expected is left to that.
]]
if not ARGV[2] and redis.pcall('GET', KEYS[1]) == ARGV[1]
  and not redis.pcall('LINDEX', KEYS[3], '0') then
  return redis.call('DEL', KEYS[1])
end

