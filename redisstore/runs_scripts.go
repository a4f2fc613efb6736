package redisstore

// The scripts on a run take one key:
//
//	KEYS[1] a hash of v version, b the run as package ledger encodes it, l the
//	        lineage, a the alias and n the number of its last step, s the server process that
//	        wrote it, w the last version that replicas confirmed, d doubt ("" none)

// process leaves the id of the server's process in srv; it is another one after
// every start. A server that does not tell has none.
const process = `
local srv = ''
local info = redis.pcall('INFO', 'server')
if type(info) == 'string' then srv = string.match(info, 'run_id:(%x+)') or '' end
local m = redis.call('HMGET', KEYS[1], 'v', 'b', 's', 'w', 'd', 'n')
local d = m[5] or ''
if m[1] and m[3] and m[3] ~= srv and tonumber(m[4] or '0') < tonumber(m[1]) then d = '1' end
`

// loadRunScript reads a run.
//
//	{0, run, doubt, version, last version confirmed}  {2} there is none  {6} it is not a run
var loadRunScript = newScript(process + `
if not m[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then return {6} end
  return {2}
end
if not m[2] then return {6} end
return {0, m[2], d, m[1], m[4] or '0'}
`)

// saveRunScript writes a run whose version is still as expected.
//
//	ARGV[1] the version expected, "0" for none
//	ARGV[2] the new one  [3] run  [4] lineage  [5] alias  [6] number of the last step  [7] ttl
//
//	{0}  {2} there is none  {4, version} another one  {6} it is not a run
var saveRunScript = newScript(process + `
if not m[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then return {6} end
  if ARGV[1] ~= '0' then return {2} end
elseif m[1] ~= ARGV[1] then
  return {4, m[1]}
end
if m[6] and m[6] ~= ARGV[6] then d = '' end
redis.call('HSET', KEYS[1], 'v', ARGV[2], 'b', ARGV[3], 'l', ARGV[4], 'a', ARGV[5], 'n', ARGV[6], 's', srv, 'd', d)
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return {0}
`)

// listScript puts a member first in a list by time, of bounded length.
//
//	KEYS[1] zset  ARGV[1] member  [2] length  [3] ttl
var listScript = newScript(clock + `
redis.call('ZADD', KEYS[1], stamp, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {0}
`)
