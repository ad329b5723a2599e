-- ARGV: time, the act, what it is of. Whose hosts are, as the leader of a crawl tells its workers, by numbers that grow;
-- one that begins with all anew has another name. A worker asks for what has a number after the last that it knows.
local act = {}
local HOSTS, ORDER, ABOUT, HEARD = P .. 'owners', P .. 'owners:order', P .. 'owners:about', P .. 'owners:heard'
local MOST = 1000
-- name, number, is first, is whole, host, owner ...: tells whose hosts are. Returns 0 when it does not follow what is
-- there. A host that was always another's is left out.
function act.tell()
  local name, number = ARGV[3], tonumber(ARGV[4])
  if ARGV[5] == '1' then
    call('UNLINK', HOSTS, ORDER, ABOUT)
  else
    local found = call('HMGET', ABOUT, 'name', 'number')
    if found[1] ~= name or tonumber(found[2]) ~= number - 1 then return 0 end
  end
  for item = 7, #ARGV, 2 do
    local host, owner = ARGV[item], ARGV[item + 1]
    if owner ~= '-' or call('HEXISTS', HOSTS, host) == 1 then
      call('HSET', HOSTS, host, owner)
      call('ZADD', ORDER, number, host)
    end
  end
  call('HSET', ABOUT, 'name', name, 'number', number, 'whole', ARGV[6])
  return 1
end
-- name, number, span: the others of the group are there, which counts for the span. Returns 0 when that is not what is
-- there.
function act.hear()
  local found = call('HMGET', ABOUT, 'name', 'number')
  if found[1] ~= ARGV[3] or found[2] ~= ARGV[4] then return 0 end
  call('SET', HEARD, 1, 'PX', ARGV[5])
  return 1
end
-- name, number: what came after that. Returns the name, the number, 1 if it is whole, and for how long the others count
-- as there; then of each host: the number, the host, its owner.
function act.look()
  local about_it = call('HMGET', ABOUT, 'name', 'number', 'whole')
  local found = {about_it[1] or '', about_it[2] or '0', about_it[3] or '0', call('PTTL', HEARD)}
  local after = about_it[1] == ARGV[3] and ARGV[4] or '0'
  local rows = call('ZRANGEBYSCORE', ORDER, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  for item = 1, #rows, 2 do
    found[#found + 1] = rows[item + 1]
    found[#found + 1] = rows[item]
    found[#found + 1] = call('HGET', HOSTS, rows[item])
  end
  return found
end
return act[ARGV[2]]()
