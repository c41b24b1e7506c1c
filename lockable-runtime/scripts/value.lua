--[[
The value of a lock, read and written. It is in front of the scripts that need it, and no other one knows its signs.

  [sign] <process and locker, 16 hexadecimal digits> (. or -) <number> [!] [<blank> <request id>]

An owner token has no sign in front. With a hyphen it is released by a command that deletes exactly that value, without
a look at the queue: so a waiter marks it, once, and then the holder runs the script of a release. With a point it is
released by a script alone, and never marked.

  +  marked by a waiter
  ~  stays taken after its release
  =  stays taken after its release, and for a second longer, because it has waiters: within that second the first
     request of a waiter has it handed off, and no newcomer finds it free
  !  of a `once` call: a lock that stays taken is done
  |  paused
  @  of a ticket

What begins with anything else is taken, by no one whom this version knows: nothing here frees or changes it.
See "When does one `DELEX` or `DELIFEQ` release a lock?" in DESIGN.md.
See "How does `min_hold` keep a lock taken after its release?" in DESIGN.md.
]]

-- Whether the token has the lock, marked or not. What another library wrote is no marked token.
local function is_held(value, token)
  return value == token
    or value == '+' .. token and string.match(token, '^' .. string.rep('%x', 16) .. '%-%d') ~= nil
end

-- Only what a command would delete is marked.
local function mark(lock, value)
  if type(value) == 'string' and string.match(value, '^' .. string.rep('[0-9a-f]', 16) .. '%-%d') then
    redis.call('SET', lock, '+' .. value, 'KEEPTTL')
  end
end

-- The token whose release left the lock taken, and whether that is for a second longer; nothing of another value.
local function left_taken(value)
  if type(value) ~= 'string' then
    return nil
  end
  local sign, token = string.match(value, '^([~=])(%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x[.-]%d.*)$')
  return token, sign == '='
end

-- Leaves the lock taken for so many milliseconds, and where it has waiters for a second longer. A renewal that is late
-- does not find its own.
local function leave_taken(lock, token, life, has_waiters)
  local sign, longer = has_waiters and '=' or '~', has_waiters and 1000 or 0
  redis.call('SET', lock, sign .. token, 'PX', string.format('%.0f', life + longer))
end

-- For how many milliseconds the lock is taken, without that second.
local function rest_of(lock, value)
  local _, is_longer = left_taken(value)
  return redis.call('PTTL', lock) - (is_longer and 1000 or 0)
end

-- The begin of a value that is no holder's.
local function obstacle(value)
  return string.match(string.sub(value or '', 1, 1024), '^[^%x+].*')
end
