--[[
Runs a guarded script, unless a caller with a newer fencing token ran one before.

KEYS[1]  the record of the newest fencing token seen
ARGV[1]  the fencing token of the caller
Output   what the guarded script returns; the error FENCED, which names both tokens, when it was
         not run because the token is older than the record

The function `guarded` is defined in front of this text. It finds its own keys and arguments in
KEYS and ARGV, from 1 on. The record is written first, because a guarded script that fails midway
leaves behind what it has written until then. Tokens are compared as texts: a number of Lua keeps
53 bits.

Idempotent where the guarded script is, because an equal token passes.
]]
local function digits(text)
  return string.match(text or '', '^0*(%d+)$')
end

local function is_older(token, newest)
  return #token < #newest or (#token == #newest and token < newest)
end

local record, token = table.remove(KEYS, 1), digits(table.remove(ARGV, 1))
if not record or not token then
  return redis.error_reply('ERR KEYS[1] must be a record and ARGV[1] a fencing token')
end
local seen = redis.call('GET', record)
local newest = digits(seen or '0')
if not newest then
  return redis.error_reply('ERR there is no fencing token at ' .. record)
end
if is_older(token, newest) then
  local text = 'FENCED the fencing token %s is older than %s, the newest seen by %s'
  return redis.error_reply(string.format(text, token, newest, record))
end
if token ~= seen then
  redis.call('SET', record, token)
end
return guarded()
