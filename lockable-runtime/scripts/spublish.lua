--[[
Publishes wake-ups on shard channels, those of a cluster: each has the tag of the fence counter's name, so
that it is in the slot of the lock, and on the node that runs the script. Either this or publish.lua is in
front of hand_off.lua.

PUBLISH would reach every node, but it counts only those who listen at the node that runs the script, as SPUBLISH
does. It counts first who listens, as publish.lua does: where no one does, nothing is passed on to the replicas.
See "Why does `PUBSUB NUMSUB` come before each wake-up?" in DESIGN.md.

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

