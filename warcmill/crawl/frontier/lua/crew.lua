-- ARGV: time, the act, what it is of. The workers of a job: who lives, what the leader orders, and who has done it.
local act = {}
-- A worker is kept as `token moment launch text`: the launch whose files it has open, '-' for none.
local function worker(name)
  local found = call('HGET', P .. 'workers', name)
  if not found then return nil end
  local token, moment, launch, more = string.match(found, '^(%w+) (%d+) (%S+) (.*)$')
  return {token = token, age = math.max(0, now - moment), launch = launch, more = more}
end
-- name, token, span, launch, about: a sign of life. Returns 'retired', 'open' or 'lives' with what has the name, when it
-- is refused: one that has files open keeps its name, any other for the span; else the launch, what counts, the order,
-- and how many crawls were purged.
function act.sign()
  local retired, other = call('HGET', P .. 'retired', ARGV[3]), worker(ARGV[3])
  if retired then return {'retired', retired} end
  if other and other.token ~= ARGV[4] then
    if other.launch ~= '-' then return {'open', other.more} end
    if other.age < tonumber(ARGV[5]) then return {'lives', other.more} end
  end
  call('HSET', P .. 'workers', ARGV[3], ARGV[4] .. ' ' .. string.format('%.0f', now) .. ' ' .. ARGV[6] .. ' ' .. ARGV[7])
  local order = call('HMGET', P .. 'order', 'number', 'launch', 'kind', 'stage')
  local files = call('HMGET', P .. 'job', 'edition', 'elsewhere')
  return {
    about[9] or '', files[1] or '', files[2] or '', order[1] or '0', order[2] or '', order[3] or '', order[4] or '',
    call('SCARD', E .. 'purged'),
  }
end
-- name, token: a worker leaves; what it has done stays.
function act.leave()
  local found = worker(ARGV[3])
  if found and found.token == ARGV[4] then
    call('HSET', P .. 'workers', ARGV[3], ARGV[4] .. ' 0 - ' .. found.more)
  end
  return {}
end
-- name, token, launch, about: a Redis that was emptied hears of a worker that is silent.
function act.remember()
  call('HSETNX', P .. 'workers', ARGV[3], ARGV[4] .. ' 0 ' .. ARGV[5] .. ' ' .. ARGV[6])
  return {}
end
-- is new, launch, edition, file, bytes ...: what a worker needs of the launch. One that is begun has no orders yet.
function act.publish()
  local is_other = call('HGET', P .. 'job', 'launch') ~= ARGV[4]
  call('DEL', P .. 'job')
  call('HSET', P .. 'job', 'launch', ARGV[4], 'edition', ARGV[5], unpack(ARGV, 6))
  if ARGV[3] == '1' then
    call('DEL', P .. 'order', P .. 'reports')
    call('HDEL', P .. 'about', 'paused')
  end
  if is_other then
    call('DEL', P .. 'statistics', P .. 'visits')
    for _, name in ipairs(call('HKEYS', P .. 'workers')) do
      if worker(name).launch == '-' then call('HDEL', P .. 'workers', name) end
    end
  end
  return {}
end
-- The launch and its files; nothing while another has begun.
function act.job()
  if call('HGET', P .. 'job', 'launch') ~= about[9] then return {} end
  return call('HGETALL', P .. 'job')
end
-- text: what each process is to count of the others.
function act.elsewhere() return call('HSET', P .. 'job', 'elsewhere', ARGV[3]) end
-- launch, kind, stage: an order to all workers. Returns its number.
function act.order()
  local number = call('HINCRBY', P .. 'about', 'orders', 1)
  call('DEL', P .. 'reports')
  call('HSET', P .. 'order', 'number', number, 'launch', ARGV[3], 'kind', ARGV[4], 'stage', ARGV[5])
  return number
end
-- name, number, writer, statistics: a worker has done an order, and has closed its files for a stage.
function act.report()
  call('HSET', P .. 'statistics', ARGV[3], ARGV[6])
  call('HDEL', P .. 'visits', ARGV[5])
  if call('HGET', P .. 'order', 'number') == ARGV[4] then call('HSET', P .. 'reports', ARGV[3], ARGV[4]) end
  return {}
end
function act.statistics() return call('HGETALL', P .. 'statistics') end
-- yes or no: while a crawl is paused nothing is leased.
function act.pause()
  if ARGV[3] == '1' then call('HSET', P .. 'about', 'paused', 1) else call('HDEL', P .. 'about', 'paused') end
  return {}
end
-- number, document ...: what is asked for, and how, by the targets of URIs.
function act.teach()
  local numbers = {}
  for i = 3, #ARGV, 2 do numbers[#numbers + 1] = ARGV[i] end
  call('HSET', P .. 'targets', unpack(ARGV, 3))
  call('SREM', P .. 'asked', unpack(numbers))
  return {}
end
-- number ...: the documents of targets. The leader is asked for those that are not there.
function act.targets()
  local found = call('HMGET', P .. 'targets', unpack(ARGV, 3))
  for i, one in ipairs(found) do
    if not one then call('SADD', P .. 'asked', ARGV[2 + i]) end
  end
  return found
end
-- The numbers of the targets that are asked for.
function act.asked() return call('SRANDMEMBER', P .. 'asked', 100) end
-- cursor: some numbers of targets, after where to go on.
function act.taught()
  local found = call('HSCAN', P .. 'targets', ARGV[3], 'COUNT', 100)
  local numbers = {found[1]}
  for i = 1, #found[2], 2 do numbers[#numbers + 1] = found[2][i] end
  return numbers
end
-- number ...: nothing waits for these targets any more.
function act.forget() return call('HDEL', P .. 'targets', unpack(ARGV, 3)) end
-- writer: how many of its visits since its last stage only its disk has.
function act.visits() return tonumber(call('HGET', P .. 'visits', ARGV[3]) or 0) end
-- name, text: a worker is dead.
function act.retire() return call('HSET', P .. 'retired', ARGV[3], ARGV[4]) end
function act.retired() return call('HGETALL', P .. 'retired') end
-- The number of the order. Of each worker then its name, when it gave the last sign, the launch that it has open, the
-- last order that it has done, its token, its leases, and what it is.
function act.list()
  local found, leases = {tonumber(call('HGET', P .. 'order', 'number') or 0)}, {}
  for _, lease in ipairs(call('HVALS', E .. 'leases')) do
    local writer = string.match(lease, '^%d+ %w+ ([^\n]*)\n')
    leases[writer] = (leases[writer] or 0) + 1
  end
  for _, name in ipairs(call('HKEYS', P .. 'workers')) do
    local one = worker(name)
    found[#found + 1] = name
    found[#found + 1] = one.age
    found[#found + 1] = one.launch
    found[#found + 1] = tonumber(call('HGET', P .. 'reports', name) or 0)
    found[#found + 1] = one.token
    found[#found + 1] = leases[string.sub(one.token, 1, 32)] or 0
    found[#found + 1] = one.more
  end
  return found
end
note_clock()
return act[ARGV[2]]()
