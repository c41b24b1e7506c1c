--[[
Publishes grants on plain channels, those of a whole server. Either this or spublish.lua is in front of
hand_off.lua.

The fence counter's name ends in `:fence:{<tag of three letters>}`; the namespace is what it begins with.
]]
local function publish(fence, process, text)
  return redis.pcall('PUBLISH', string.sub(fence, 1, -13) .. ':grant:' .. process, text)
end

