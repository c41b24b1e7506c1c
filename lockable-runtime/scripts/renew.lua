--[[
Extends locks that their attempts hold, and no others; never makes one shorter.

KEYS[n]       a lock
ARGV[2n - 1]  the owner token of the attempt that should hold it
ARGV[2n]      for how many milliseconds it has to last from now; 0 only checks whether it is held
ARGV[2N + 1]  behind the arguments of all N locks, if at all: then the script ends with a write, in which
              one of the held locks gets the end that it has
Output        for each lock: 1 held, 0 no one holds it, -1 another holder, or other data, has it, or
              the error of the command for this lock

A lock that a waiter has marked is still its holder's.
Idempotent because a lock is never made, and its end only moves forwards.

See "Why is a late renewal harmless (`PEXPIRE GT`)?" in DESIGN.md.
See "How does `replicas` confirm a lock (`WAIT`)?" in DESIGN.md.
]]
local outcomes, held, value = {}, nil, nil
for n, key in ipairs(KEYS) do
  local owner, token, outcome = redis.pcall('GET', key), ARGV[2 * n - 1], 1
  if not is_held(owner, token) then
    local failed = type(owner) == 'table' and string.sub(owner.err, 1, 9) ~= 'WRONGTYPE'
    outcome = failed and owner or owner and -1 or 0
  elseif ARGV[2 * n] ~= '0' then
    local renewed = redis.pcall('PEXPIRE', key, ARGV[2 * n], 'GT')
    outcome = type(renewed) == 'table' and renewed or 1
  end
  if outcome == 1 then
    held, value = key, owner
  end
  outcomes[n] = outcome
end
if held and ARGV[2 * #KEYS + 1] then
  local rest = redis.call('PTTL', held)
  if rest > 0 then
    redis.call('PEXPIRE', held, rest)
  else
    redis.call('SET', held, value, 'KEEPTTL')
  end
end
return outcomes
