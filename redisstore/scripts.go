package redisstore

import "github.com/redis/go-redis/v9"

// script is a Lua script. Redis is sent its hash, and the text when it does not know that.
type script struct {
	*redis.Script
	text string
}

func newScript(text string) *script { return &script{redis.NewScript(text), text} }

// All scripts on a turn take the same keys, appendScript those of several turns:
//
//	KEYS[1] the record: a hash of
//	        f fence, o owner ("" when released), b fence at birth, n size of the
//	        log in bytes, p phase, c and u times of creation and of the last write
//	        in µs, h identity and s state as package checkpoint encodes them
//	KEYS[2] the log
//	KEYS[3] the largest fence, as a tombstone of a deleted, finished or evicted
//	        record: who comes late with an older one is told so
//
// and answer with an array whose first element is an outcome. Times to live are
// milliseconds. Commands that need memory come first: when Redis is full, a
// script fails before it changed anything. Fences are compared as numbers, which
// is exact: µs since 1970 fit the 53 bits of a Lua number for two centuries.
type outcome int64

// The outcomes. The Lua below uses the numbers.
const (
	done     outcome = 0
	fenced   outcome = 1 // a newer fence exists, or this one was released
	notFound outcome = 2
	gap      outcome = 3 // [2] is the size of the log
	conflict outcome = 4
	tooLarge outcome = 5 // [2] is the size that it would have
	corrupt  outcome = 6 // the record and the log disagree, or it is not a record
	behind   outcome = 7 // the record has an older fence: a fail-over lost our claim
	owned    outcome = 8
	newer    outcome = 9 // written by a newer release
	taken    outcome = 10
	alien    outcome = 11 // somebody else's key under our prefix
)

// ours is a function of the scripts that write. It returns the f, o, n and p of the
// record if mine is its fence, or nil and an outcome.
const ours = `
local function ours(record, last, mine)
  local m = redis.call('HMGET', record, 'f', 'o', 'n', 'p')
  mine = tonumber(mine)
  if not m[1] then
    if redis.call('EXISTS', record) == 1 then return nil, 6 end
    local known = tonumber(redis.call('GET', last) or '0')
    if known and known > mine then return nil, 1 end
    return nil, 2
  end
  if tonumber(m[1]) < mine then return nil, 7 end
  if tonumber(m[1]) > mine then return nil, 1 end
  return m
end
`

// guard begins the scripts that write to one turn. It leaves the record in m, or answers.
//
//	ARGV[1] fence
const guard = ours + `
local m, why = ours(KEYS[1], KEYS[3], ARGV[1])
if not m then return {why} end
`

// clock leaves the time in now, µs.
const clock = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local stamp = string.format('%.0f', now)
`

// claimScript takes a turn.
//
//	ARGV[1] owner
//	ARGV[2] identity  [3] state of a new turn
//	ARGV[4] the fence to take it from, because its owner is dead; or ""
//	ARGV[5] the newest encoding we can read
//	ARGV[6] ttl, unless it is finished  [7] ttl of the fence
//	ARGV[8] how much of the log to answer with, bytes
//
//	{0, fence}               a new turn
//	{10, fence, record...}   taken; the record as it was
//	{8, fence, record...}    in the hands of another; nothing changed
//	{6}, {9}                 unreadable; nothing changed
//
// record... is b, o, h, s, c, u, n, head of the log.
var claimScript = newScript(clock + `
local m = redis.call('HMGET', KEYS[1], 'f', 'b', 'o', 'h', 's', 'c', 'u', 'n', 'p')
local answer = {0}
if m[1] then
  if not (m[3] and m[4] and m[5] and m[8]) then return {6} end
  if redis.call('STRLEN', KEYS[2]) ~= tonumber(m[8]) then return {6} end
  if string.byte(m[4]) > tonumber(ARGV[5]) or string.byte(m[5]) > tonumber(ARGV[5]) then return {9} end
  answer = {10, m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], redis.call('GETRANGE', KEYS[2], 0, ARGV[8] - 1)}
  if m[3] ~= '' and m[3] ~= ARGV[1] and m[1] ~= ARGV[4] then
    answer[1] = 8
    return answer
  end
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return {6}
end
local last = math.max(tonumber(m[1] or '0'), tonumber(redis.call('GET', KEYS[3]) or '0') or 0)
local fence = string.format('%.0f', math.max(last + 1, now))
redis.call('SET', KEYS[3], fence, 'PX', ARGV[7])
if m[1] then
  redis.call('HSET', KEYS[1], 'f', fence, 'o', ARGV[1], 'u', stamp)
else
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'f', fence, 'b', fence, 'o', ARGV[1], 'h', ARGV[2], 's', ARGV[3],
    'c', stamp, 'u', stamp, 'n', '0', 'p', '0')
end
if m[9] ~= '3' then
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
  redis.call('PEXPIRE', KEYS[2], ARGV[6])
end
answer[2] = fence
return answer
`)

// appendScript appends to the logs of some turns, to each once, however often it is
// called. Of every turn it takes the three keys and four arguments, in their order.
//
//	ARGV[1] most bytes of a log  [2] ttl, unless it is finished
//	ARGV[4i-1] fence  [4i] offset  [4i+1] bytes  [4i+2] "1": its ttl begins anew
//
// The answer is {0}, and behind it three numbers of each turn with which it was not done:
// its own, from 1; the outcome; and the size of its log where it matters. An error means
// that Redis does not write now, of whichever turn.
var appendScript = newScript(ours + clock + `
local most, ttl = tonumber(ARGV[1]), ARGV[2]
local function append(record, log, last, fence, offset, p, renew)
  local m, why = ours(record, last, fence)
  if not m then return why end
  if m[2] == '' then return 1 end
  local size = redis.call('STRLEN', log)
  if size ~= tonumber(m[3]) then return 6 end
  offset = tonumber(offset)
  if offset < 0 or offset > size then return 3, size end
  local known = math.min(#p, size - offset)
  if known > 0 then
    if redis.call('GETRANGE', log, offset, offset + known - 1) ~= string.sub(p, 1, known) then return 4 end
    p = string.sub(p, known + 1)
  end
  if size + #p > most then return 5, size + #p end
  local first = size == 0
  if #p > 0 then size = redis.call('APPEND', log, p) end
  redis.call('HSET', record, 'u', stamp, 'n', size)
  if m[4] ~= '3' and (first or renew ~= '') then
    redis.call('PEXPIRE', record, ttl)
    redis.call('PEXPIRE', log, ttl)
  end
  return 0
end
local answer = {0}
for i = 1, #KEYS / 3 do
  local k, a = 3 * i, 4 * i
  local fine, o, size = pcall(append, KEYS[k - 2], KEYS[k - 1], KEYS[k], ARGV[a - 1], ARGV[a], ARGV[a + 1], ARGV[a + 2])
  if not fine then
    local text = type(o) == 'table' and o.err or tostring(o)
    if not string.find(text, 'WRONGTYPE', 1, true) then return redis.error_reply(text) end
    o = 11
  end
  if o ~= 0 then
    local n = #answer
    answer[n + 1], answer[n + 2], answer[n + 3] = i, o, size or 0
  end
end
return answer
`)

// markScript replaces the state, unless that is final.
//
//	ARGV[1] fence  [2] state  [3] phase
//	ARGV[4] ttl of that phase  [5] ttl of the fence
//
//	{0} {1} {2} {6} {7}
var markScript = newScript(guard + `
if m[2] == '' then return {1} end
if m[4] == '3' then return {0} end
` + clock + `
redis.call('HSET', KEYS[1], 's', ARGV[2], 'p', ARGV[3], 'u', stamp)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[5])
return {0}
`)

// releaseScript gives the turn up.
//
//	ARGV[1] fence
//
//	{0} {1} {2} {6} {7}
var releaseScript = newScript(guard + `
if m[2] ~= '' then
` + clock + `
  redis.call('HSET', KEYS[1], 'o', '', 'u', stamp)
end
return {0}
`)

// deleteScript forgets the turn, but not for a while which fence was its last.
//
//	ARGV[1] fence  [2] ttl of the fence
//
//	{0} also when it is gone  {1} {6} {7}
var deleteScript = newScript(guard + `
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('PEXPIRE', KEYS[3], ARGV[2])
return {0}
`)

// restoreScript writes a record again that Redis lost, by eviction, fail-over or
// restart, and empties its log, unless there is a newer fence.
//
//	ARGV[1] fence  [2] owner  [3] identity  [4] state  [5] phase  [6] created, µs
//	ARGV[7] ttl of that phase  [8] ttl of the fence
//
//	{0} {1} {6}
var restoreScript = newScript(clock + `
local mine = tonumber(ARGV[1])
local f = redis.call('HGET', KEYS[1], 'f')
if f and tonumber(f) > mine then return {1} end
if not f and redis.call('EXISTS', KEYS[1]) == 1 then return {6} end
local last = tonumber(redis.call('GET', KEYS[3]) or '0')
if last and last > mine then return {1} end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[8])
redis.call('HSET', KEYS[1], 'f', ARGV[1], 'b', ARGV[1], 'o', ARGV[2], 'h', ARGV[3], 's', ARGV[4],
  'p', ARGV[5], 'c', ARGV[6], 'u', stamp, 'n', '0')
redis.call('DEL', KEYS[2])
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return {0}
`)

// readScript reads the record and a part of its log.
//
//	ARGV[1] offset  [2] most bytes of the log
//
//	{0, fence, record...}  {2}  {6}
var readScript = newScript(`
local m = redis.call('HMGET', KEYS[1], 'f', 'b', 'o', 'h', 's', 'c', 'u', 'n')
if not m[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then return {6} end
  return {2}
end
if not (m[3] and m[4] and m[5] and m[8]) then return {6} end
if redis.call('STRLEN', KEYS[2]) ~= tonumber(m[8]) then return {6} end
local part = ''
local offset, most = tonumber(ARGV[1]), tonumber(ARGV[2])
if most > 0 and offset < tonumber(m[8]) then
  part = redis.call('GETRANGE', KEYS[2], offset, offset + most - 1)
end
return {0, m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], part}
`)

// offersScript reads what is offered. KEYS[1] is the question's key alone.
//
//	{0, turns...}, the oldest first
var offersScript = newScript(`
local answer = redis.call('ZRANGE', KEYS[1], 0, -1)
table.insert(answer, 1, 0)
return answer
`)

// offerScript offers a turn for adoption. KEYS[1] is the question's key alone.
//
//	ARGV[1] turn  [2] most offers  [3] ttl
//
//	{0}
var offerScript = newScript(clock + `
redis.call('ZADD', KEYS[1], 'NX', stamp, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[2] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {0}
`)

// withdrawScript takes offers back. KEYS[1] is the question's key alone.
//
//	ARGV turns
//
//	{0}
var withdrawScript = newScript(`
redis.call('ZREM', KEYS[1], unpack(ARGV))
return {0}
`)
