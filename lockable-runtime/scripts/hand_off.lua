--[[
Hands a lock off to the first waiter in its queue that can be reached, or frees it. It is in front of
the scripts that do so, which call it only where they may end the hold.

An entry of the queue is "<milliseconds> <owner token>": so long the lock stays reserved for the waiter, which queries
within that time. The digits before the first dot of a token name the channel on which its process listens. The function
`publish` is defined in front of this text, sends the wake-up, and returns the number of subscribers. If that is 0, the
waiter is dead: its entry is dropped, and the next one is tried. Where this user may not publish, the lock is free, and the
waiters find it when they query.
A wake-up is "<owner token>\n<lock key>". It grants nothing: the answer to the waiter's request does.

A grant reserves seventeen fencing tokens, and the answer has the first: so a holder can pass its turn on
sixteen times within its process. They are never below the time, so that they rise over whatever the
server has lost. For the same reason they are hardly above it: the locks of a slot share the counter, and
where that is ahead of the time a grant reserves a single token. So the first token says how many there
are: more than one if it is the time, and one if it is later.
See "How far may a fence counter be ahead of the server's clock?" in DESIGN.md.
See "Why do two bodies never run under one lock?" in DESIGN.md.

Other data in place of the queue or the fence counter are left alone, and do not keep a lock from being
released: it is free then, and waiters get the error when they ask.

Calls are most of what this costs, a microsecond each on a busy server and three on one that was idle.
So there are as few as can be, and no numbers among their arguments, which are slow to print.
]]

local function now_in_micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- The error of other data in place of a companion key says which one, and any other stays as it is. No
-- error contains a key, because keys may have to be redacted.
local function at(what, failed)
  if string.sub(failed.err, 1, 9) == 'WRONGTYPE' then
    return redis.error_reply('WRONGTYPE at the ' .. what)
  end
  return failed
end

-- The fence counter is nearly always behind the time, so it is seeded with that first and read then.
-- Numbers of Lua are exact to 53 bits.
local function reserve(fence, now)
  local former = redis.pcall('SET', fence, string.format('%.0f', now + 16), 'KEEPTTL', 'GET')
  if type(former) == 'table' then
    return nil, at('fence counter', former)
  end
  local counted = tonumber(former or 0)
  if not counted or counted % 1 ~= 0 or counted >= 9007199254740992 then
    redis.call('SET', fence, former, 'KEEPTTL')
    return nil, redis.error_reply('ERR no fencing token can follow what is at the fence counter')
  end
  -- A new counter has no TTL yet, nor has one that `INCR` made.
  if counted < now - 600000000 then
    redis.call('PEXPIRE', fence, '600000', 'NX')
  end
  if counted < now then
    return now
  end
  redis.call('SET', fence, string.format('%.0f', counted + 1), 'KEEPTTL')
  return counted + 1
end

-- An entry that queries again soon leaves the TTL of an existing queue to its next query.
local function join(queue, entry, life, asks_again_soon)
  local place, condition = redis.pcall('LPOS', queue, entry), 'GT'
  if not place then
    place = redis.pcall('RPUSH', queue, entry)
    condition = place == 1 and 'NX' or 'GT'
  end
  if type(place) == 'table' then
    return at('queue', place)
  end
  if condition == 'NX' or not asks_again_soon then
    redis.call('PEXPIRE', queue, life, condition)
  end
end

-- Puts a waiter back that cannot be handed the lock now. Its process queries within a second.
local function put_back(queue, entry)
  redis.pcall('LPUSH', queue, entry)
  redis.pcall('PEXPIRE', queue, '30000', 'NX')
end

-- The lock has a waiter now. It joined first, so a server that is full lets the script write this.
local function reserve_for_waiters(lock, owner)
  mark(lock, owner)
  local token, is_longer = left_taken(owner)
  local life = token and not is_longer and redis.call('PTTL', lock)
  if life and life >= 0 then
    leave_taken(lock, token, life, true)
  end
end

-- Reserves the lock for the first waiter that a wake-up reaches, starting with this entry, which was taken out of the
-- queue; frees it where there is none. Returns the token of that waiter. The attempt that calls needs no wake-up: where
-- its own token is returned, the caller writes the lock.
local function hand_off(lock, fence, queue, own, entry)
  if type(entry) == 'table' and string.sub(entry.err, 1, 9) ~= 'WRONGTYPE' then
    return entry
  end
  while type(entry) == 'string' do
    local millis, token, process = string.match(entry, '^(%d+) ((%x+)%..*)$')
    if token and token == own then
      return token
    end
    local listeners = token and publish(fence, process, token .. '\n' .. lock) or 0
    if type(listeners) == 'table' then
      put_back(queue, entry)
      break
    end
    if listeners > 0 then
      redis.call('SET', lock, token, 'PX', millis)
      return token
    end
    entry = redis.pcall('LPOP', queue)
  end
  redis.call('DEL', lock)
  return false
end
