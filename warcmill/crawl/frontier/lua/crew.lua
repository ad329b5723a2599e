-- ARGV: time, the act, what it is of. The workers of a job: who lives, what the leader orders, and who has done it.
local act = {}
local function worker(name)
  local found = call('HGET', P .. 'workers', name)
  if not found then return nil end
  local token, moment, more = string.match(found, '^(%w+) (%d+) (.*)$')
  return {token = token, age = math.max(0, now - moment), more = more}
end
-- name, token, span, about: a sign of life. Returns what holds the name, when another has it who gave a sign within the
-- span; else the launch, and the order: its number, launch, kind and stage.
function act.sign()
  local other = worker(ARGV[3])
  if other and other.token ~= ARGV[4] and other.age < tonumber(ARGV[5]) then return other.more end
  call('HSET', P .. 'workers', ARGV[3], ARGV[4] .. ' ' .. string.format('%.0f', now) .. ' ' .. ARGV[6])
  local order = call('HMGET', P .. 'order', 'number', 'launch', 'kind', 'stage')
  return {about[9] or '', order[1] or '0', order[2] or '', order[3] or '', order[4] or ''}
end
-- name, token: a worker leaves.
function act.leave()
  local found = worker(ARGV[3])
  if found and found.token == ARGV[4] then call('HDEL', P .. 'workers', ARGV[3]) end
  return {}
end
-- is new, launch, file, bytes ...: what a worker needs of the launch. One that is new has no orders yet.
function act.publish()
  call('DEL', P .. 'job')
  call('HSET', P .. 'job', 'launch', unpack(ARGV, 4))
  if ARGV[3] == '1' then call('DEL', P .. 'order', P .. 'reports') end
  return {}
end
-- The launch and its files; nothing while another has begun.
function act.job()
  if call('HGET', P .. 'job', 'launch') ~= about[9] then return {} end
  return call('HGETALL', P .. 'job')
end
-- launch, kind, stage: an order to all workers. Returns its number.
function act.order()
  local number = call('HINCRBY', P .. 'about', 'orders', 1)
  call('DEL', P .. 'reports')
  call('HSET', P .. 'order', 'number', number, 'launch', ARGV[3], 'kind', ARGV[4], 'stage', ARGV[5])
  return number
end
-- name, number: a worker has done an order.
function act.report()
  if call('HGET', P .. 'order', 'number') == ARGV[4] then call('HSET', P .. 'reports', ARGV[3], ARGV[4]) end
  return {}
end
-- Of each worker: its name, when it gave the last sign, the last order that it has done, and what it is.
function act.list()
  local found = {}
  for _, name in ipairs(call('HKEYS', P .. 'workers')) do
    local one = worker(name)
    found[#found + 1] = name
    found[#found + 1] = one.age
    found[#found + 1] = tonumber(call('HGET', P .. 'reports', name) or 0)
    found[#found + 1] = one.more
  end
  return found
end
note_clock()
return act[ARGV[2]]()
