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

Other data in place of the queue or the floor are left alone, and do not keep a lock from being
released: it is free then, and whoever waits is told of them when it asks.
]]
local function now_in_micros()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Other data in the place of a companion key is told with its name, anything else as it is.
local function at(what, key, failed)
  if string.sub(failed.err, 1, 9) == 'WRONGTYPE' then
    return redis.error_reply('WRONGTYPE at the ' .. what .. ' ' .. key)
  end
  return failed
end

local function reserve(floor, now)
  local counted = redis.pcall('GET', floor) or '0'
  if type(counted) == 'table' then
    return nil, at('floor', floor, counted)
  end
  counted = tonumber(counted)
  local first = math.max(counted + 1, now)
  local life = math.max(600000, redis.call('PTTL', floor))
  redis.call('SET', floor, string.format('%.0f', first + 16), 'PX', life)
  return first
end

local function join(queue, entry, life)
  local place = redis.pcall('LPOS', queue, entry)
  if type(place) == 'table' then
    return at('queue', queue, place)
  end
  if not place then
    redis.call('RPUSH', queue, entry)
  end
  redis.call('PEXPIRE', queue, life, 'GT')
  redis.call('PEXPIRE', queue, life, 'NX')
end

local function hand_on(lock, floor, queue, own)
  local entry = redis.pcall('LINDEX', queue, '0')
  if type(entry) == 'table' and string.sub(entry.err, 1, 9) ~= 'WRONGTYPE' then
    return entry
  end
  while type(entry) == 'string' do
    local millis, token, process = string.match(entry, '^(%d+) ((%x+)%..*)$')
    if token then
      local now = now_in_micros()
      local first = reserve(floor, now)
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
        redis.call('LPOP', queue)
        return token == own and {first, now} or false
      end
    end
    redis.call('LPOP', queue)
    entry = redis.call('LINDEX', queue, '0')
  end
  redis.call('DEL', lock)
  return false
end
