--[[
Makes locks last longer that their attempts hold, and no others; never shorter.

KEYS[n]       a lock
ARGV[2n - 1]  the owner token of the attempt that is to hold it
ARGV[2n]      for how many milliseconds it has to last from now; 0 only asks whether it is held
Output        for each lock: 1 held, 0 nobody holds it, -1 another holder, or other data, has it

Idempotent because a lock is never made, and its end only moves forwards.
]]
local outcomes = {}
for n, key in ipairs(KEYS) do
  local owner = redis.pcall('GET', key)
  if owner == ARGV[2 * n - 1] then
    if ARGV[2 * n] ~= '0' then
      redis.call('PEXPIRE', key, ARGV[2 * n], 'GT')
    end
    outcomes[n] = 1
  elseif type(owner) == 'table' and string.sub(owner.err, 1, 9) ~= 'WRONGTYPE' then
    return owner
  else
    outcomes[n] = owner and -1 or 0
  end
end
return outcomes
