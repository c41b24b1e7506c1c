--[[
Publishes wake-ups on plain channels, those of a whole server. Either this or spublish.lua is in front of
hand_off.lua.

It counts first who listens: PUBLISH would count subscriptions to patterns too, and one of a person who watches
would make a killed process look alive, for which the lock would then be reserved for a second.
See "Why does `PUBSUB NUMSUB` come before each wake-up?" in DESIGN.md.

The fence counter's name ends in `:fence:{<tag of three letters>}`; the namespace is what it begins with.
]]
local function publish(fence, process, text)
  local channel = string.sub(fence, 1, -13) .. ':grant:' .. process
  local counted = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if counted.err then
    return counted
  end
  if counted[2] == 0 then
    return 0
  end
  local published = redis.pcall('PUBLISH', channel, text)
  return type(published) == 'table' and published or counted[2]
end
