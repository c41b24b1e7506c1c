--[[
Publishes grants on plain channels, those of a whole server. Either this or spublish.lua is in front of
hand_off.lua.

It counts first who listens on this server: a server passes on to its replicas what it publishes, and a process
may have subscribed at one of them, when that was the primary a moment ago. A waiter whom the script passes
over must hear of no grant. Subscriptions to patterns, which PUBLISH would count, are not counted.
See "Why does `PUBSUB NUMSUB` come before each published grant?" in DESIGN.md.

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
