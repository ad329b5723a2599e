-- ARGV: time, writer, number, is last, then six for each, by the first:
--   S by name documents bytes milliseconds      what was fetched, for quotas
--   C crawl name value                          a cookie; '' for one that has ended
--   R origin span text                          the robots.txt of a site, for how long
--   M spider name value                         what a spider remembers; '' for what it has forgotten
local done = heard(ARGV[2], ARGV[3])
if done then return done end
for item = 5, #ARGV, 6 do
  local word, name, value = ARGV[item], ARGV[item + 1], ARGV[item + 2]
  if word == 'S' then
    local key = E .. round .. ':sum:' .. name
    local before = call('HGET', key, value) or '0 0 0'
    local documents, bytes, span = string.match(before, '(%d+) (%d+) (%d+)')
    call('HSET', key, value, string.format('%.0f %.0f %.0f', documents + ARGV[item + 3], bytes + ARGV[item + 4],
      span + ARGV[item + 5]))
  elseif word == 'C' then
    local key = E .. 'cookies:' .. cid_of(name, true)
    if ARGV[item + 3] == '' then call('HDEL', key, value) else call('HSET', key, value, ARGV[item + 3]) end
    call('HINCRBY', P .. 'about', 'cookies', 1)
  elseif word == 'M' then -- what was forgotten stays, as other processes read what has changed
    call('HSET', E .. 'memory:' .. name, value, ARGV[item + 3])
    call('ZADD', E .. 'changed:' .. name, call('HINCRBY', P .. 'about', 'memory', 1), value)
    call('SADD', E .. 'remember', name)
  else
    call('HSET', E .. 'sites', name, string.format('%.0f', now + value) .. ' ' .. ARGV[item + 3])
  end
end
note_clock()
note_heard(ARGV[2], ARGV[3], ARGV[4])
return {}
