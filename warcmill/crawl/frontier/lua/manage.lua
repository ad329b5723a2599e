-- ARGV: time, the act, what it is of.
local act = {}
local function forget(of) -- what spiders remember
  for _, spider in ipairs(call('SMEMBERS', of .. 'remember')) do
    call('UNLINK', of .. 'memory:' .. spider, of .. 'changed:' .. spider)
  end
  call('UNLINK', of .. 'remember')
end
-- writer, number heard, launch, how: begins the round of a launch, unless it has begun. Returns by how much the clock
-- was set back, and the launch before. One that continues has in it what its writer noted until now: its checkpoint has.
function act.begin()
  local writer, number, launch, how = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
  local before = call('HGET', P .. 'about', 'launch') or ''
  if before ~= launch then
    if how == 'fresh' then
      call('RPUSH', P .. 'eras', era)
      call('HSET', P .. 'about', 'era', era + 1, 'round', round + 1, 'holes', 0)
    elseif how ~= 'continues' then
      call('UNLINK', E .. round .. ':sum:host', E .. round .. ':sum:target', E .. round .. ':sum:crawl')
    end
    if how == 'follows' then
      call('UNLINK', E .. round .. ':done')
      call('HSET', P .. 'about', 'round', round + 1)
      forget(E)
    end
    call('HSET', P .. 'about', 'launch', launch, 'visited', 1, 'version', 1)
  end
  if before ~= launch and how == 'fresh' then call('DEL', P .. 'heard') end
  if writer ~= '' and before ~= launch then
    local is_later = tonumber(number) > tonumber(call('HGET', P .. 'heard', writer) or 999)
    if how == 'fresh' or (how == 'continues' and is_later) then call('HSET', P .. 'heard', writer, number) end
  end
  return {set_back, before}
end
-- writer, number, launch: a worker joins a launch. Returns 0 when it is another by now.
function act.join()
  if call('HGET', P .. 'about', 'launch') ~= ARGV[5] then return 0 end
  call('HSETNX', P .. 'heard', ARGV[3], ARGV[4])
  return 1
end
-- writer, number: what came before that is not to be heard.
function act.hear()
  call('HSET', P .. 'heard', ARGV[3], ARGV[4])
  return {}
end
-- name, span, waits: takes a turn that nobody has, or extends it. Returns 0 when it is taken, else how long it lasts.
function act.turn()
  local key, span = P .. 'turn:' .. ARGV[3], tonumber(ARGV[4])
  local left = call('PTTL', key)
  if ARGV[5] == '1' and left > 0 then return left end
  if left < span then call('SET', key, 1, 'PX', span) end
  return 0
end
-- Writes what nobody reads: an error when this Redis takes nothing now.
function act.probe()
  call('HSET', P .. 'about', 'probe', 1)
  return {}
end
-- queue, span: closes a gate; 0 opens it.
function act.block()
  local span = tonumber(ARGV[4])
  call('HINCRBY', E .. 'queues', ARGV[3], 0)
  if span == 0 then open(ARGV[3]) else close(ARGV[3], span < 0 and FOREVER or now + span) end
  refresh(ARGV[3])
  return {}
end
-- queue, rate: '' is that of all that have none of their own; no rate: none.
function act.rate()
  local queue, rate = ARGV[3], ARGV[4]
  if queue == '' then
    if rate == (usual or '') then return {} end
    if rate == '' then call('HDEL', P .. 'about', 'usual') else call('HSET', P .. 'about', 'usual', rate) end
    usual = rate ~= '' and rate
    for _, lease in ipairs(call('HVALS', E .. 'leases')) do
      touch(queue_of(string.match(lease, '\n([^\n]*)')))
    end
    refresh_touched()
  else
    if rate == '' then call('HDEL', P .. 'rates', queue) else call('HSET', P .. 'rates', queue, rate) end
    rated = call('HLEN', P .. 'rates')
    call('HSET', P .. 'about', 'rated', rated)
    refresh(queue)
  end
  return {}
end
-- by: what shares a rate; '' is the queue alone. Where it is another than before, leases are taken back first.
function act.gates()
  local by = ARGV[3]
  if by == gate_by then return {} end
  for _, id in ipairs(call('HKEYS', E .. 'leases')) do give_back(tonumber(id)) end
  write_sums()
  for _, queue in ipairs(call('HKEYS', E .. 'queues')) do
    gates_of(queue, spiders_of(call('HGET', E .. 'q:' .. queue, 'spiders')), function(gate, spiders, exit)
      for _, spider in ipairs(spiders) do
        local field = spider == '' and 'ready' or 'ready/' .. spider
        set_ready(gate, spider, ready_of(spider, exit), call('HGET', E .. 'q:' .. gate, field), nil)
      end
    end)
    touch(queue)
  end
  call('HSET', P .. 'about', 'gate_by', by)
  by_spider, by_exit = string.find(by, 'spider', 1, true), string.find(by, 'exit', 1, true)
  refresh_touched()
  return {}
end
-- writer, cursor, token ...: gives back some leases of a writer but those of these tokens. Returns the next cursor.
function act.release()
  local known = {}
  for item = 5, #ARGV do known[ARGV[item]] = true end
  local following, leases = unpack(call('HSCAN', E .. 'leases', ARGV[4], 'COUNT', 15))
  for item = 1, #leases, 2 do
    local token, writer = string.match(leases[item + 1], '^(%d+) %w+ ([^\n]*)\n')
    if writer == ARGV[3] and not known[token] then give_back(tonumber(leases[item])) end
  end
  refresh_touched()
  write_sums()
  return following
end
-- id, token ...: gives back leases that nobody has used.
function act.unused()
  for item = 3, #ARGV, 2 do
    local lease = call('HGET', E .. 'leases', ARGV[item])
    if lease and string.match(lease, '^%d+') == ARGV[item + 1] then give_back(tonumber(ARGV[item])) end
  end
  refresh_touched()
  write_sums()
  return {}
end
-- crawl: gives up its name. Returns how many of its URIs waited.
function act.purge()
  local cid = cid_of(ARGV[3], false)
  if not cid then return 0 end
  local counts = call('HMGET', E .. 'waits', cid .. ':w', cid .. ':s')
  local waited, suspended = tonumber(counts[1] or 0), tonumber(counts[2] or 0)
  call('HDEL', E .. 'waits', cid .. ':w', cid .. ':s', cid .. ':d')
  call('HDEL', E .. round .. ':done', cid .. ':P', cid .. ':F', cid .. ':R')
  call('HDEL', E .. round .. ':sum:crawl', ARGV[3])
  call('HINCRBY', E .. 'waits', 'w', 0 - waited) -- of none, -0 would be no integer to Redis
  call('UNLINK', E .. 'cookies:' .. cid)
  call('HINCRBY', P .. 'about', 'cookies', 1)
  call('HDEL', P .. 'crawls', ARGV[3])
  call('SADD', P .. 'purging', cid)
  call('SADD', E .. 'purged', cid)
  call('HSET', P .. 'about', 'purging', call('SCARD', P .. 'purging'))
  return waited + suspended
end
-- Deletes some of what a purge, or a launch that has ended, has left. Returns how many waited, and 1 when all is gone.
function act.tidy()
  local cid = call('SRANDMEMBER', P .. 'purging')
  if cid then
    local names, waited = call('SRANDMEMBER', E .. 'buckets:' .. cid, 3), 0
    for _, name in ipairs(names) do
      local found = call('HSCAN', E .. 's:' .. name, 0, 'COUNT', 20)[2]
      for item = 1, math.min(#found, 60), 2 do -- a small hash is scanned whole
        local row = not visit_of(found[item + 1]) and row_of(tonumber(found[item + 1]))
        if row then
          drop(row)
          waited = waited + 1
        end
        call('HDEL', E .. 's:' .. name, found[item])
      end
      if #found == 0 then call('SREM', E .. 'buckets:' .. cid, name) end
      if waited > 20 then break end
    end
    refresh_touched()
    write_sums()
    if #names == 0 then
      local tags, histories = call('SPOP', P .. 'tags:' .. cid, 100), call('SPOP', P .. 'histories:' .. cid, 100)
      for _, name in ipairs(tags) do call('UNLINK', P .. 't:' .. name) end
      for _, name in ipairs(histories) do call('UNLINK', P .. 'h:' .. name) end
      if #tags + #histories == 0 then
        call('SREM', P .. 'purging', cid)
        call('HSET', P .. 'about', 'purging', call('SCARD', P .. 'purging'))
      end
    end
    return {waited, 0}
  end
  local old = call('LINDEX', P .. 'eras', 0)
  if not old then return {0, 1} end
  local O = P .. old .. ':'
  local queues, exits = call('HSCAN', O .. 'queues', 0, 'COUNT', 20)[2], call('HKEYS', P .. 'exits')
  exits[#exits + 1] = ''
  for item = 1, #queues, 2 do
    local queue = queues[item]
    for _, spider in ipairs(spiders_of(call('HGET', O .. 'q:' .. queue, 'spiders'))) do
      call('UNLINK', O .. 'l:' .. queue .. '/' .. spider, O .. 'x:' .. queue .. '/' .. spider)
      for _, exit in ipairs(exits) do call('UNLINK', O .. 'q:' .. gate_of(queue, spider, exit)) end
    end
    call('UNLINK', O .. 'q:' .. queue)
    call('HDEL', O .. 'queues', queue)
  end
  if #queues > 0 then return {0, 0} end
  local rows = call('ZPOPMIN', O .. 'rows', 20)
  for item = 1, #rows, 2 do call('UNLINK', O .. 'r:' .. rows[item]) end
  if #rows > 0 then return {0, 0} end
  local crawls = call('HVALS', P .. 'crawls')
  for _, of in ipairs(call('SMEMBERS', O .. 'purged')) do crawls[#crawls + 1] = of end
  for _, of in ipairs(crawls) do
    call('UNLINK', O .. 'cookies:' .. of)
    local left = call('SPOP', O .. 'buckets:' .. of, 100)
    for _, name in ipairs(left) do call('UNLINK', O .. 's:' .. name) end
    if #left > 0 then return {0, 0} end
  end
  forget(O)
  local spiders, exits = call('SMEMBERS', O .. 'spiders'), call('HKEYS', P .. 'exits')
  spiders[#spiders + 1] = ''
  for _, spider in ipairs(spiders) do
    call('UNLINK', O .. 'ready/' .. spider)
    for _, exit in ipairs(exits) do call('UNLINK', O .. 'ready/' .. spider .. '/' .. exit) end
  end
  call('UNLINK', O .. 'ready/', O .. 'spiders', O .. 'wake', O .. 'later', O .. 'leases', O .. 'ends', O .. 'queues',
    O .. 'waits', O .. 'sites', O .. 'purged', O .. 'twice')
  for number = 1, round do
    call('UNLINK', O .. number .. ':done', O .. number .. ':sum:host', O .. number .. ':sum:target', O .. number .. ':sum:crawl')
  end
  call('LPOP', P .. 'eras')
  return {0, 0}
end
note_clock()
return act[ARGV[2]]()
