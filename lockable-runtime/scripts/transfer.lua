--[[
Gives a lock from one owner token to another, for a lease of its own: to a ticket, and from a ticket to its holder.

KEYS[1]  the lock
ARGV[1]  the owner token that has it
ARGV[2]  the owner token that gets it
ARGV[3]  for how many milliseconds it lasts from now
Output   1 it is the second token's, now or before; 0 no one holds the lock; -1 another holder, or other data, has it

A waiter may have marked the first token. The second one is released by the script, which looks at the queue, so it needs
no mark; and no command deletes that of a ticket.
Idempotent because a token that has given its lock away never gets it again, and a repeated request only makes the
lock last longer.

See "How does a ticket pass a lock to another process?" in DESIGN.md.
]]
local lock, token, life = KEYS[1], ARGV[2], ARGV[3]
local owner = redis.pcall('GET', lock)
if type(owner) == 'table' then
  return string.sub(owner.err, 1, 9) == 'WRONGTYPE' and -1 or owner
end
if is_held(owner, ARGV[1]) then
  redis.call('SET', lock, token, 'PX', life)
  return 1
end
if owner == token then
  redis.call('PEXPIRE', lock, life, 'GT')
  return 1
end
return owner and -1 or 0
