--[[
Looks whether a script finds at a fence counter what a command has written there.

KEYS[1]  the lock of a trial, which no one holds
KEYS[2]  its fence counter
KEYS[3]  its queue
ARGV[1]  what the command has written
Output   1 it is there; 0 it is not, so the keys of a lock are on several servers

Changes nothing.

See "How is a sharding proxy detected?" in DESIGN.md.
]]
return redis.call('GET', KEYS[2]) == ARGV[1] and 1 or 0
