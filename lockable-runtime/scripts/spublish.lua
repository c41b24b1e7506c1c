--[[
Publishes grants on shard channels, those of a cluster: each has the tag of the fence counter's name, so
that it is in the slot of the lock, and on the node that runs the script. Either this or publish.lua is in
front of hand_off.lua.

PUBLISH would reach every node, but it counts only those who listen at the node that runs the script. So does
SPUBLISH; but a replica passes the message on to those who have subscribed there, as they may when it was the
master a moment ago. A waiter whom the script passes over must hear of no grant, so it counts first.
See "Why does `PUBSUB NUMSUB` come before each published grant?" in DESIGN.md.

The fence counter's name ends in `:fence:{<tag of three letters>}`; the namespace is what it begins with.
]]
local function publish(fence, process, text)
  local channel = string.sub(fence, 1, -13) .. ':grant:' .. process .. ':' .. string.sub(fence, -5)
  local counted = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
  if counted.err then
    return counted
  end
  return counted[2] > 0 and redis.pcall('SPUBLISH', channel, text) or 0
end

