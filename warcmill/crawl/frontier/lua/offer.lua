-- ARGV: time, writer, number, is last, how many crawls, their names, then for each URI: the number of its crawl among
-- those, digest, until (a span; 0: now, -1: for ever), queue, spider, priority, the rest, its tag. With a tag, '-' for
-- none, it is taken though it is known: one that waits is changed, one that is leased after its visit. Returns 1 for each
-- that was taken.
local done = heard(ARGV[2], ARGV[3])
if done then return done end
local names, at, found, lists, fresh, taken = {}, 6 + tonumber(ARGV[5]), {}, {}, {}, {}
for number = 1, tonumber(ARGV[5]) do names[number] = cid_of(ARGV[5 + number], true) end
local function know_spider(row)
  if row.spider == '' then return end
  local key = E .. 'q:' .. row.queue
  local known = call('HGET', key, 'spiders') or ''
  if not string.find('\n' .. known, '\n' .. row.spider .. '\n', 1, true) then
    call('HSET', key, 'spiders', known .. row.spider .. '\n')
  end
  call('SADD', E .. 'spiders', row.spider)
end
-- Have a row that waits be as it is offered now; one that is leased, after its visit.
local function change(row, item)
  local lease, span = call('HGET', E .. 'leases', row.id), tonumber(ARGV[item + 2])
  local til = span < 0 and FOREVER or now + span
  if lease and is_to_go(lease) then return end
  local word = not lease and take_out(row) or nil
  add(E .. 'queues', row.queue, -1)
  add(E .. 'queues', ARGV[item + 3], 1)
  touch(row.queue)
  row.queue, row.spider, row.priority, row.blob = ARGV[item + 3], ARGV[item + 4], tonumber(ARGV[item + 5]), ARGV[item + 6]
  row.tries = 0
  put_row(row)
  know_spider(row)
  if lease then
    ask(row.id, lease, string.format('+%.0f', til))
  else
    await(row, til)
    count(row.cid, word, -1)
    count(row.cid, til >= FOREVER and 's' or 'w', 1)
  end
  touch(row.queue)
end
for item = at, #ARGV, 8 do
  local cid, digest, tag = names[tonumber(ARGV[item])], ARGV[item + 1], ARGV[item + 7]
  local value = seen(cid, digest)
  local visit = value and visit_of(value)
  if tag ~= '' and value and not visit and not taken[cid .. digest] then
    found[#found + 1] = 1
    change(row_of(tonumber(value)), item)
  elseif tag ~= '' and visit and visit.round == round and not taken[cid .. digest] then
    found[#found + 1] = 1
    count(cid, visit.status, -1)
    call('HSET', P .. 'about', 'visited', 1)
    fresh[#fresh + 1] = item
    taken[cid .. digest] = true
  elseif taken[cid .. digest] or (value and not (visit and visit.round < round)) then
    found[#found + 1] = 0
  else
    found[#found + 1] = 1
    fresh[#fresh + 1] = item
    taken[cid .. digest] = true
  end
  if tag ~= '' and tag ~= '-' then put_tag(cid, digest, tag) end
end
if #fresh > 0 then
  local id = call('HINCRBY', P .. 'about', 'next', #fresh) - #fresh
  local rows = {}
  for _, item in ipairs(fresh) do
    id = id + 1
    local cid, span = names[tonumber(ARGV[item])], tonumber(ARGV[item + 2])
    local row = {
      id = id, digest = ARGV[item + 1], cid = cid, tries = 0, queue = ARGV[item + 3], spider = ARGV[item + 4],
      priority = tonumber(ARGV[item + 5]), blob = ARGV[item + 6],
    }
    rows[#rows + 1] = row
    local til = span < 0 and FOREVER or now + span
    put_row(row)
    call('ZADD', E .. 'rows', math.floor(id / EACH), math.floor(id / EACH))
    add(E .. 'queues', row.queue, 1)
    count(cid, til >= FOREVER and 's' or 'w', 1)
    if span == 0 and row.priority == 0 then
      local list = list_of(row.queue, row.spider)
      lists[list] = lists[list] or {}
      table.insert(lists[list], id)
    else
      await(row, til)
    end
    know_spider(row)
    touch(row.queue)
  end
  for list, ids in pairs(lists) do call('RPUSH', list, unpack(ids)) end
  -- The last: a script that an error cuts off before has taken nothing, and the URIs are taken when they come again.
  for _, row in ipairs(rows) do put_seen(row.cid, row.digest, row.id) end
end
refresh_touched()
write_sums()
note_clock()
note_heard(ARGV[2], ARGV[3], ARGV[4])
return found
