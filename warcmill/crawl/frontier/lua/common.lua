-- Every script begins with this: the keys of a frontier, and the moves of its URIs. docs/frontier-keys.md lists the keys.
-- KEYS[1] begins all of them. ARGV[1] is the time in milliseconds, '' for Redis's own; times cross the wire as spans.
local P, call = KEYS[1], redis.call
local FOREVER = 1099511627776000
local EACH = 1024 -- rows of one key
local budget = 500 -- what one call may pass over
local about = call('HMGET', P .. 'about', 'era', 'round', 'clock', 'offset', 'usual', 'rated', 'holes', 'purging', 'launch',
  'gate_by')
local era, round = tonumber(about[1] or 1), tonumber(about[2] or 1)
local usual, rated = about[5], tonumber(about[6] or 0)
local holes, purging = tonumber(about[7] or 0), tonumber(about[8] or 0)
local E = P .. era .. ':'
local gate_by = about[10] or ''
local by_spider, by_exit = string.find(gate_by, 'spider', 1, true), string.find(gate_by, 'exit', 1, true)

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- A clock that was set back goes on from where it was: only spans leave this server, so nobody sees the difference.
local set_back = tonumber(about[3] or 0) - (now + tonumber(about[4] or 0))
if set_back > 1000 then
  call('HSET', P .. 'about', 'offset', string.format('%d', tonumber(about[4] or 0) + set_back))
else
  set_back = 0
end
now = now + tonumber(about[4] or 0) + set_back
local function note_clock()
  if now > tonumber(about[3] or 0) + 500 then call('HSET', P .. 'about', 'clock', string.format('%d', now)) end
end

-- What a writer sends of its journal has a number, a group's times 1,000 and that of the call in it, and is done once.
-- The last call of a group counts as 999. Returns nil when it is to be done.
local function heard(writer, number)
  if writer == '' then return nil end
  local last, this = tonumber(call('HGET', P .. 'heard', writer) or 999), tonumber(number)
  if this <= last then return 'heard' end
  return last ~= this - 1 and 'behind' or nil
end
local function note_heard(writer, number, is_last)
  if writer == '' then return end
  local this = tonumber(number)
  if is_last == '1' then this = this - this % 1000 + 999 end
  call('HSET', P .. 'heard', writer, string.format('%d', this))
end

-- Counts are gathered, and written at the end of a script.
local sums = {}
local function add(key, field, number)
  local of = sums[key] or {}
  sums[key], of[field] = of, (of[field] or 0) + number
end
local function write_sums()
  for key, of in pairs(sums) do
    for field, number in pairs(of) do
      if number ~= 0 then call('HINCRBY', key, field, number) end
    end
  end
end

-- Crawls: 'm1' is one without a name, 'c2' one with. Its URIs are spread over many small hashes, which Redis packs.
local cids = {}
local function cid_of(name, make)
  if cids[name] then return cids[name] end
  local cid = call('HGET', P .. 'crawls', name)
  if not cid and make then
    cid = (name == '' and 'm' or 'c') .. call('HINCRBY', P .. 'about', 'crawls', 1)
    call('HSET', P .. 'crawls', name, cid)
  end
  cids[name] = cid
  return cid
end
local function bucket(cid, digest)
  if string.sub(cid, 1, 1) == 'm' then
    return cid .. string.format(':%02x%02x', string.byte(digest, 1, 2)), string.sub(digest, 3)
  end
  return cid .. string.format(':%02x', string.byte(digest, 1)), string.sub(digest, 2)
end
local function is_purged(cid) return purging > 0 and call('SISMEMBER', P .. 'purging', cid) == 1 end
local function count(cid, word, number)
  if not is_purged(cid) then
    local lives = word == 'w' or word == 's' or word == 'd'
    add(E .. (lives and 'waits' or round .. ':done'), cid .. ':' .. word, number)
    if word == 'w' then add(E .. 'waits', 'w', number) end
  end
end

-- Of a URI that was taken: the number of its row, or how its last visit ended.
local function seen(cid, digest)
  local name, field = bucket(cid, digest)
  return call('HGET', E .. 's:' .. name, field)
end
local function put_seen(cid, digest, value)
  local name, field = bucket(cid, digest)
  call('HSET', E .. 's:' .. name, field, value)
  call('SADD', E .. 'buckets:' .. cid, name)
end
local function visit_of(value)
  local status = string.sub(value, 1, 1)
  if status ~= 'P' and status ~= 'F' and status ~= 'R' then return nil end
  local of, http, finished = struct.unpack('>I4i2I4', value, 2)
  return {status = status, round = of, http = http, finished = finished}
end
local function pack_visit(status, http, finished)
  return status .. struct.pack('>I4i2I4', round, tonumber(http), tonumber(finished))
end
-- The tag of a URI that may be renewed.
local function tag_of(cid, digest)
  local name, field = bucket(cid, digest)
  return call('HGET', P .. 't:' .. name, field) or ''
end
local function put_tag(cid, digest, tag)
  local name, field = bucket(cid, digest)
  call('HSET', P .. 't:' .. name, field, tag)
  call('SADD', P .. 'tags:' .. cid, name)
end
local function put_history(cid, digest, history)
  if history == '' then return end
  local name, field = bucket(cid, digest)
  call('HSET', P .. 'h:' .. name, field, history)
  call('SADD', P .. 'histories:' .. cid, name)
end

-- Rows: 16 bytes of the digest, then priority, crawl, tries, queue, spider, and what only the caller reads.
local function place(id) return E .. 'r:' .. math.floor(id / EACH), id % EACH end
local function member(id, queue) return string.format('%013d', id) .. (queue or '') end
local function header(row)
  local priority = string.format('%.0f', row.priority) -- 15 digits would have an exponent
  return row.digest .. priority .. ' ' .. row.cid .. ' ' .. row.tries .. ' ' .. row.queue .. '\n' .. row.spider .. '\n'
end
local function parse(id, raw)
  local priority, cid, tries, queue, spider, at = string.match(raw, '^(%-?%d+) (%w+) (%d+) ([^\n]*)\n([^\n]*)\n()', 17)
  return {
    id = id, raw = raw, digest = string.sub(raw, 1, 16), priority = tonumber(priority), cid = cid, tries = tries,
    queue = queue, spider = spider, blob = string.sub(raw, at),
  }
end
local function row_of(id)
  local key, field = place(id)
  local raw = call('HGET', key, field)
  return raw and parse(id, raw)
end
local function put_row(row)
  local key, field = place(row.id)
  call('HSET', key, field, header(row) .. row.blob)
end
local function hole(number)
  holes = holes + number
  call('HINCRBY', P .. 'about', 'holes', number)
end

-- Gates: of a queue, and where rates are by more than that, of a queue, a spider and an exit. A block is of the queue.
local function gate_of(queue, spider, exit)
  return queue .. (by_spider and '\t' .. spider or '') .. (by_exit and '\t@' .. exit or '')
end
local function queue_of(gate) return string.match(gate, '^[^\t]*') end
local function ready_of(spider, exit) return E .. 'ready/' .. spider .. (by_exit and '/' .. exit or '') end
-- What waits behind one: a list of rows of priority 0 in order of arrival, and a set of all others.
local function list_of(queue, spider) return E .. 'l:' .. queue .. '/' .. spider end
local function others_of(queue, spider) return E .. 'x:' .. queue .. '/' .. spider end
local POLITE, rates = {a = 1}, {}
local function rate_of(queue)
  local text = rated > 0 and call('HGET', P .. 'rates', queue) or usual
  if not text then return POLITE end
  rates[text] = rates[text] or cjson.decode(text)
  return rates[text]
end
local function within(recent, rate)
  local kept = {}
  for moment in string.gmatch(recent or '', '%d+') do
    if tonumber(moment) > now - rate.w then kept[#kept + 1] = moment end
  end
  return kept
end
local function room_of(rate, out, recent)
  local room = rate.a and rate.a - tonumber(out or 0) or 1e9
  if rate.n and rate.m then return math.min(room, 1) end
  return rate.n and math.min(room, rate.n - #within(recent, rate)) or room
end
local function close(queue, til)
  call('HSET', E .. 'q:' .. queue, 'wake', string.format('%.0f', til))
  call('ZADD', E .. 'wake', til, queue)
end
local function open(queue)
  call('HDEL', E .. 'q:' .. queue, 'wake')
  call('ZREM', E .. 'wake', queue)
end
local function soonest_opening()
  local soonest = nil
  for _, key in ipairs({'wake', 'later'}) do
    local first = call('ZRANGEBYSCORE', E .. key, '-inf', '(' .. string.format('%.0f', FOREVER), 'WITHSCORES', 'LIMIT', 0, 1)
    if first[2] and (not soonest or tonumber(first[2]) < soonest) then soonest = tonumber(first[2]) end
  end
  return soonest
end
local function is_listed(id, others)
  budget = budget - 1
  return budget < 0 or (row_of(id) and call('HEXISTS', E .. 'leases', id) == 0 and not call('ZSCORE', E .. 'later', id)
    and not call('ZSCORE', others, member(id)))
end
local function head(queue, spider)
  local list, others = list_of(queue, spider), others_of(queue, spider)
  local first = tonumber(call('LINDEX', list, 0) or nil)
  while first and holes > 0 and not is_listed(first, others) do
    call('LPOP', list)
    hole(-1)
    first = tonumber(call('LINDEX', list, 0) or nil)
  end
  local other = call('ZRANGE', others, 0, 0, 'WITHSCORES')
  if other[1] then
    local id, priority = tonumber(other[1]), tonumber(other[2])
    if not first or priority < 0 or (priority == 0 and id < first) then return id, priority end
  end
  return first, 0
end
local function spiders_of(text)
  local found = {''}
  for spider in string.gmatch(text or '', '[^\n]+') do found[#found + 1] = spider end
  return found
end
local function set_ready(gate, spider, ready, before, id, priority)
  local queue, field = queue_of(gate), spider == '' and 'ready' or 'ready/' .. spider
  local after = id and member(id, queue) or false
  if before == after then return end
  if before then call('ZREM', ready, before) end
  if after then
    call('ZADD', ready, priority, after)
    call('HSET', E .. 'q:' .. gate, field, after)
  else
    call('HDEL', E .. 'q:' .. gate, field)
  end
end
-- Put a gate where its first row belongs among those that may be leased from, or take it out.
local function refresh_gate(name, queue, spiders, exit)
  local key, rate = E .. 'q:' .. name, rate_of(queue)
  local gate = call('HMGET', key, 'wake', 'out', 'recent', 'ready', 'spiders')
  local is_open = not gate[1] and room_of(rate, gate[2], gate[3]) > 0
  if name ~= queue then is_open = is_open and call('HEXISTS', E .. 'q:' .. queue, 'wake') == 0 end
  if rate.n and not rate.m and not gate[1] then
    local kept = within(gate[3], rate)
    if #kept >= rate.n then close(name, kept[#kept - rate.n + 1] + rate.w) end
  end
  for _, spider in ipairs(spiders or spiders_of(gate[5])) do
    local before, ready = gate[4], ready_of(spider, exit)
    if spider ~= '' then before = call('HGET', key, 'ready/' .. spider) end
    if is_open then
      set_ready(name, spider, ready, before, head(queue, spider))
    else
      set_ready(name, spider, ready, before, nil)
    end
  end
end
local function gates_of(queue, spiders, each)
  for _, exit in ipairs(by_exit and call('HKEYS', P .. 'exits') or {''}) do
    if by_spider then
      for _, spider in ipairs(spiders) do each(gate_of(queue, spider, exit), {spider}, exit) end
    else
      each(gate_of(queue, '', exit), spiders, exit)
    end
  end
end
local function refresh(queue)
  if not by_spider and not by_exit then return refresh_gate(queue, queue, nil, '') end
  gates_of(queue, spiders_of(call('HGET', E .. 'q:' .. queue, 'spiders')), function(gate, spiders, exit)
    refresh_gate(gate, queue, spiders, exit)
  end)
end
local touched = {}
local function touch(queue) touched[queue] = true end
local function refresh_touched()
  for queue in pairs(touched) do refresh(queue) end
  touched = {}
end
local function leave(gate, span)
  local til = now + span
  if span > 0 and til > tonumber(call('HGET', E .. 'q:' .. gate, 'wake') or 0) then close(gate, til) end
  touch(queue_of(gate))
end

-- Where a row waits.
local function await(row, til)
  if til > now then
    call('ZADD', E .. 'later', string.format('%.0f', til), row.id)
  else
    call('ZADD', others_of(row.queue, row.spider), row.priority, member(row.id))
  end
end
local function take_out(row)
  local later = call('ZSCORE', E .. 'later', row.id)
  if later then
    call('ZREM', E .. 'later', row.id)
    return tonumber(later) >= FOREVER and 's' or 'w'
  end
  local was_other = call('ZREM', others_of(row.queue, row.spider), member(row.id)) == 1
  if not was_other and row.priority == 0 then
    local list = list_of(row.queue, row.spider)
    if tonumber(call('LINDEX', list, 0) or nil) == row.id then call('LPOP', list) else hole(1) end
  end
  return 'w'
end
-- A lease belongs to its visit: what a person asks for meanwhile takes effect at its end. It is a time at the end of the
-- lease, or a visit: `R 0 1800000000`.
local function asked_of(lease) return lease and string.match(lease, '\n[^\n]*\n(.*)$') end
-- A person has ended the wait of its URI, which nothing brings back.
local function is_to_go(lease) return string.match(asked_of(lease) or '', '^%a') end
-- It was offered anew meanwhile: `+` and until when it waits. Its row has the rest.
local function is_renewed(asked) return asked and string.sub(asked, 1, 1) == '+' end
local function ask(id, lease, asked)
  call('HSET', E .. 'leases', id, string.match(lease, '^[^\n]*\n[^\n]*') .. '\n' .. asked)
end
-- Returns the gate, and what was asked for.
local function end_lease(id)
  local lease = call('HGET', E .. 'leases', id)
  if not lease then return nil end
  local token, cid, writer, gate = string.match(lease, '^(%d+) (%w+) ([^\n]*)\n([^\n]*)')
  call('HDEL', E .. 'leases', id)
  call('ZREM', E .. 'ends', id)
  call('HINCRBY', E .. 'q:' .. gate, 'out', -1)
  count(cid, 'd', -1)
  touch(queue_of(gate))
  return gate, asked_of(lease)
end
local function delete(row)
  local key, field = place(row.id)
  call('HDEL', key, field)
  add(E .. 'queues', row.queue, -1)
end
local function end_wait(row, status, http, finished)
  delete(row)
  put_seen(row.cid, row.digest, pack_visit(status, http, finished))
  count(row.cid, 'w', -1)
  count(row.cid, status, 1)
end
-- Let a row wait whose lease has ended: until a time, unless something else was asked for.
local function wait_as_asked(row, til, asked)
  local status, http, finished = string.match(asked or '', '^(%a) (%-?%d+) (%d+)$')
  if status then return end_wait(row, status, http, finished) end
  til = tonumber(asked) or til
  await(row, til)
  if til >= FOREVER then
    count(row.cid, 'w', -1)
    count(row.cid, 's', 1)
  end
end
local function give_back(id)
  local gate, asked = end_lease(id)
  local row = gate and row_of(id)
  if row then wait_as_asked(row, 0, asked) end
end
-- End the wait of a row, whichever it is; returns how it counted.
local function drop(row)
  local word = 'w'
  if not end_lease(row.id) then word = take_out(row) end
  delete(row)
  count(row.cid, word, -1)
  touch(row.queue)
  return word
end
