-- ARGV: time, writer, spider, limit, span in ms, the launch, the number that was heard last, the exit, how many of all
-- are for now. Returns 'lost' when Redis knows less than that; else 1 if more may be had at once, the versions of cookies
-- and of memories, in which span something opens ('' for never), then for each lease: id, token, row, history. Where a
-- window of time counts, nothing is leased but for now.
local writer, spider, limit, span, exit = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[8]
local for_now = tonumber(ARGV[9])
local SOME = 100
if ARGV[6] ~= (about[9] or '') or tonumber(call('HGET', P .. 'heard', writer) or 999) < tonumber(ARGV[7]) then
  return 'lost'
end
local is_listed_whole = true
if by_exit then -- one that is new may ask every queue; these are listed some at a time
  local cursor = call('HGET', P .. 'exits', exit) or '0'
  if cursor ~= 'all' then
    local scanned = call('HSCAN', E .. 'queues', cursor, 'COUNT', 50)
    is_listed_whole = scanned[1] == '0'
    call('HSET', P .. 'exits', exit, is_listed_whole and 'all' or scanned[1])
    for item = 1, #scanned[2], 2 do touch(scanned[2][item]) end
  end
end
local expired = call('ZRANGEBYSCORE', E .. 'ends', '-inf', now, 'LIMIT', 0, SOME)
for _, id in ipairs(expired) do give_back(tonumber(id)) end
local opened = call('ZRANGEBYSCORE', E .. 'wake', '-inf', now, 'LIMIT', 0, SOME)
for _, gate in ipairs(opened) do
  open(gate)
  touch(queue_of(gate))
end
local due = call('ZRANGEBYSCORE', E .. 'later', '-inf', now, 'LIMIT', 0, SOME)
for _, id in ipairs(due) do
  call('ZREM', E .. 'later', id)
  local row = row_of(tonumber(id))
  if row then
    await(row, 0)
    touch(row.queue)
  end
end
refresh_touched()

local more = call('HMGET', P .. 'about', 'visited', 'cookies', 'tokens', 'paused', 'memory')
local visited = more[1]
local token = math.max(tonumber(more[3] or 0), now) -- not before the time: none is given twice, also after some were lost
local found = {0, more[2] or '0', more[5] or '0', ''}
if #expired == SOME or #opened == SOME or #due == SOME or not is_listed_whole then found[1] = 1 end
if more[4] then limit = 0 end
local ready = ready_of(spider, exit)
local leased = 0
while leased < limit do
  local first = call('ZRANGE', ready, 0, 0)[1]
  if not first then break end
  budget = budget - 1
  if budget <= 0 then
    found[1] = 1
    break
  end
  local id, queue = tonumber(string.sub(first, 1, 13)), string.sub(first, 14)
  local name = gate_of(queue, spider, exit)
  local key, rate = E .. 'q:' .. name, rate_of(queue)
  if rate.n and leased >= for_now then break end
  local gate = call('HMGET', key, 'out', 'recent', 'spiders')
  local room = room_of(rate, gate[1], gate[2])
  local row = room > 0 and row_of(id)
  if room > 0 then
    local list = list_of(queue, spider)
    if call('ZREM', others_of(queue, spider), member(id)) == 0 then
      call('LPOP', list)
      if row and holes > 0 and (call('HEXISTS', E .. 'leases', id) == 1 or call('ZSCORE', E .. 'later', id)) then
        row = nil
      end
      if not row then hole(-1) end
    end
  end
  if row and is_purged(row.cid) then
    delete(row)
    row = nil
  end
  if row then
    token, leased = token + 1, leased + 1
    call('HSET', E .. 'leases', id, token .. ' ' .. row.cid .. ' ' .. writer .. '\n' .. name)
    call('ZADD', E .. 'ends', now + span, id)
    call('HINCRBY', key, 'out', 1)
    count(row.cid, 'd', 1)
    room = room - 1
    if rate.n then
      local kept, til = within(gate[2], rate), nil
      if rate.m then
        til = now + rate.w / rate.n
      else
        kept[#kept + 1] = string.format('%.0f', now)
        call('HSET', key, 'recent', table.concat(kept, ' '))
        if #kept >= rate.n then til = tonumber(kept[1]) + rate.w end
      end
      if til and til > now then
        close(name, til)
        room = 0
      end
    end
    local history = ''
    if visited then
      local name, field = bucket(row.cid, row.digest)
      history = call('HGET', P .. 'h:' .. name, field) or ''
    end
    found[#found + 1] = id
    found[#found + 1] = token
    found[#found + 1] = row.raw
    found[#found + 1] = history
  end
  if room <= 0 and not gate[3] and gate_by == '' then
    call('ZREM', ready, first)
    call('HDEL', key, 'ready')
  else
    refresh(queue)
  end
end
if leased > 0 then call('HSET', P .. 'about', 'tokens', string.format('%.0f', token)) end
local soonest = soonest_opening()
found[4] = soonest and string.format('%.0f', soonest - now) or ''
write_sums()
note_clock()
return found
