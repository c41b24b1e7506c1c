--[[
Gives a lock to the first in its queue who can be reached, or frees it. Stands in front of the
scripts that do so, which call it only where the lock is theirs to give.

An entry of the queue is "<milliseconds of the grant> <owner token>"; the digits before the first
dot of a token name the channel on which its process listens. PUBLISH tells how many listen: when
nobody does, the next one has its turn. Where this user may not publish, the lock is free and those
who wait find it when they ask.

A grant reserves seventeen fencing tokens, the first of which it tells: so a holder can pass its
turn on sixteen times within its process. They are never below the time, so that they rise over
whatever the server has lost.

Other data in place of the queue or the fence are left alone, and do not keep a lock from being
released: it is free then, and whoever waits is told of them when it asks.

Calls are most of what this costs, a microsecond each on a busy server and three on one that was idle.
So there are as few as can be, and no numbers among their arguments, which are slow to print.
]]
local function now_in_micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Other data in the place of a companion key is told by what it is for, anything else as it is. No error
-- spells a key: it may be one that is to be hidden.
local function at(what, failed)
  if string.sub(failed.err, 1, 9) == 'WRONGTYPE' then
    return redis.error_reply('WRONGTYPE at the ' .. what)
  end
  return failed
end

-- Nearly always the fence counter lags behind the time, so it is set to that first and looked at then. Numbers
-- of Lua are exact to 53 bits.
local function reserve(fence, now)
  local former = redis.pcall('SET', fence, string.format('%.0f', now + 16), 'KEEPTTL', 'GET')
  if type(former) == 'table' then
    return nil, at('fence', former)
  end
  local counted = tonumber(former or 0)
  if not counted or counted % 1 ~= 0 or counted >= 9007199254740992 then
    redis.call('SET', fence, former, 'KEEPTTL')
    return nil, redis.error_reply('ERR no fencing token can follow what is at the fence')
  end
  -- A new one has no end, nor has a counter that started at 1.
  if counted < now - 600000000 then
    redis.call('PEXPIRE', fence, '600000', 'NX')
  end
  if counted < now then
    return now
  end
  redis.call('SET', fence, string.format('%.0f', counted + 17), 'KEEPTTL')
  return counted + 1
end

local function join(queue, entry, life)
  local place, condition = redis.pcall('LPOS', queue, entry), 'GT'
  if not place then
    place = redis.pcall('RPUSH', queue, entry)
    condition = place == 1 and 'NX' or 'GT'
  end
  if type(place) == 'table' then
    return at('queue', place)
  end
  redis.call('PEXPIRE', queue, life, condition)
end

-- A lock that stays taken after its release has the mark `~` for as long, or `=` for a second longer where
-- somebody waits: within that second the first who asks has it handed on, and no newcomer finds it free.
-- See "How does a lock stay taken until its `min_hold` is over?" in DESIGN.md.
local function mark_of(owner)
  local token = '^([~=])%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%.%d'
  return type(owner) == 'string' and string.match(owner, token)
end

local function mark(lock, mark, owner, life)
  redis.call('SET', lock, mark .. owner, 'PX', string.format('%.0f', life))
end

-- For how many milliseconds the lock is taken, without that second.
local function rest_of(lock, owner)
  return redis.call('PTTL', lock) - (mark_of(owner) == '=' and 1000 or 0)
end

-- Somebody waits now.
local function keep_for_queue(lock, owner)
  local life = mark_of(owner) == '~' and redis.call('PTTL', lock)
  if life and life >= 0 then
    mark(lock, '=', string.sub(owner, 2), life + 1000)
  end
end

-- Beginning with this entry, which is the queue's first, or in none where no queue is given.
local function hand_on(lock, fence, queue, own, entry)
  if type(entry) == 'table' and string.sub(entry.err, 1, 9) ~= 'WRONGTYPE' then
    return entry
  end
  while type(entry) == 'string' do
    local millis, token, process = string.match(entry, '^(%d+) ((%x+)%..*)$')
    if token then
      local now = now_in_micros()
      local first = reserve(fence, now)
      if not first then
        break
      end
      local heard = 1
      if token ~= own then
        local text = string.format('%.0f\n%.0f\n%s\n%s\n%s', first, now, millis, token, lock)
        heard = redis.pcall('PUBLISH', 'lockable:grant:' .. process, text)
      end
      if type(heard) == 'table' then
        break
      end
      if heard > 0 then
        redis.call('SET', lock, token, 'PX', millis)
        if queue then
          redis.call('LPOP', queue)
        end
        return token == own and {first, now} or false
      end
    end
    redis.call('LPOP', queue)
    entry = redis.call('LINDEX', queue, '0')
  end
  redis.call('DEL', lock)
  return false
end
