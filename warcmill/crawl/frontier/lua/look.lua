-- Changes nothing but what it finds to be gone. ARGV: time, the question, what it is asked of. Spans are from now.
local ask, SOME = {}, 128
local function by_crawl(each)
  local found = {}
  for item = 3, #ARGV, 2 do
    local cid = cid_of(ARGV[item], false)
    found[#found + 1] = cid and each(cid, ARGV[item + 1]) or ''
  end
  return found
end
local function state(row)
  local lease = call('HGET', E .. 'leases', row.id)
  local til = lease and tonumber(asked_of(lease)) or call('ZSCORE', E .. 'later', row.id)
  local span = til and (tonumber(til) >= FOREVER and -1 or math.max(til - now, 0)) or 0
  return {row.id, row.raw, lease and 1 or 0, span, is_to_go(lease) and asked_of(lease) or ''}
end
-- One of the fields of a row that the caller writes, from 0 on.
local function field_of(blob, number)
  local at = 1
  for _ = 1, number do
    local zero = string.find(blob, '\0', at, true)
    if not zero then return '' end
    at = zero + 1
  end
  return string.sub(blob, at, (string.find(blob, '\0', at, true) or 0) - 1)
end
-- crawl, digest ...: 1 for each that is seen.
function ask.seen()
  return by_crawl(function(cid, digest)
    local value = seen(cid, digest)
    local visit = value and visit_of(value)
    return value and not (visit and visit.round < round) and 1 or ''
  end)
end
-- crawl, digest ...: of each that is known 'w' if it waits; or how its last visit ended, when, and its tag.
function ask.renewable()
  return by_crawl(function(cid, digest)
    local value = seen(cid, digest)
    local visit = value and visit_of(value)
    if not value or (visit and visit.round < round) then return '' end
    return visit and {visit.status, visit.finished, tag_of(cid, digest)} or {'w'}
  end)
end
-- crawl, digest ...: of each id, row, is leased, span, what ends its wait after its visit or ''; or status, http, finished; or nothing.
function ask.keys()
  return by_crawl(function(cid, digest)
    local value = seen(cid, digest)
    local visit = value and visit_of(value)
    if visit then return visit.round == round and {visit.status, visit.http, visit.finished} or '' end
    local row = value and row_of(tonumber(value))
    return row and state(row) or ''
  end)
end
-- crawl, after, limit: the next number, then rows as `keys` has them; at most 1,024 are looked at. A crawl of '*' is any.
function ask.page()
  local cid, last, limit = ARGV[3] ~= '*' and cid_of(ARGV[3], false), tonumber(ARGV[4]), tonumber(ARGV[5])
  local found = {0}
  if ARGV[3] ~= '*' and not cid then return found end
  for turn = 0, EACH / SOME do
    local number = call('ZRANGEBYSCORE', E .. 'rows', math.floor((last + 1) / EACH), '+inf', 'LIMIT', 0, 1)[1]
    if not number then return found end
    if turn == EACH / SOME then
      found[1] = last
      return found
    end
    local key, first, places = E .. 'r:' .. number, math.max(last + 1, number * EACH), {}
    last = math.min(first + SOME, (number + 1) * EACH) - 1
    for id = first, last do places[#places + 1] = id % EACH end
    for at, raw in ipairs(call('HMGET', key, unpack(places))) do
      local row = raw and parse(first + at - 1, raw)
      if row and (ARGV[3] == '*' or row.cid == cid) and not is_purged(row.cid) then
        found[#found + 1] = state(row)
        if #found > limit then
          found[1] = row.id
          return found
        end
      end
    end
    if call('EXISTS', key) == 0 then call('ZREM', E .. 'rows', number) end
  end
end
-- crawl, from: the next place, -1 at the end; of the rows of one key, by crawl, queue and source: their number, the first
-- and the last priority; then those rows of which only the caller can read the source. A crawl of '*' is any.
function ask.tally()
  local cid = ARGV[3] ~= '*' and cid_of(ARGV[3], false)
  local number = (cid or ARGV[3] == '*') and call('ZRANGEBYSCORE', E .. 'rows', ARGV[4], '+inf', 'LIMIT', 0, 1)[1]
  if not number then return {-1, {}, {}} end
  local sums, order, rows, gone = {}, {}, {}, {}
  local all = call('HGETALL', E .. 'r:' .. number)
  for at = 1, #all, 2 do
    local row = parse(tonumber(all[at]), all[at + 1])
    if gone[row.cid] == nil then gone[row.cid] = is_purged(row.cid) end
    if not gone[row.cid] and (not cid or row.cid == cid) then
      local source = field_of(row.blob, 3)
      if source == '\1' or string.sub(row.blob, 1, 1) == '{' then
        rows[#rows + 1] = row.raw
      else
        local name = field_of(row.blob, 4) .. '\0' .. row.queue .. '\0' .. source
        local of = sums[name]
        if not of then
          of = {name, 0, row.priority, row.priority}
          sums[name], order[#order + 1] = of, of
        end
        of[2], of[3], of[4] = of[2] + 1, math.min(of[3], row.priority), math.max(of[4], row.priority)
      end
    end
  end
  return {number + 1, order, rows}
end
-- by, name ...: documents, bytes and milliseconds of each.
function ask.spent()
  local found = {}
  for item = 3, #ARGV, 2 do found[#found + 1] = call('HGET', E .. round .. ':sum:' .. ARGV[item], ARGV[item + 1]) or '' end
  return found
end
-- origin ...: of each the span for which it counts, and its text; or ''.
function ask.sites()
  local found = {}
  for item = 3, #ARGV do
    local value = call('HGET', E .. 'sites', ARGV[item])
    local til, at = string.match(value or '', '^(%d+) ()')
    found[#found + 1] = til and {til - now, string.sub(value, at)} or ''
  end
  return found
end
-- The version of the cookies, then of each crawl that has any: its name, and its cookies.
function ask.cookies()
  local found, crawls = {call('HGET', P .. 'about', 'cookies') or '0'}, call('HGETALL', P .. 'crawls')
  for item = 1, #crawls, 2 do
    local cookies = call('HVALS', E .. 'cookies:' .. crawls[item + 1])
    if #cookies > 0 then
      found[#found + 1] = crawls[item]
      found[#found + 1] = cookies
    end
  end
  return found
end
-- spider, version: the version now, and of each text that it remembers and that changed after: its name, and the text.
function ask.memory()
  local version, after = call('HGET', P .. 'about', 'memory') or '0', tonumber(ARGV[4])
  if tonumber(version) < after then after = 0 end -- it was lost, and loaded again
  local found = {version}
  for _, name in ipairs(call('ZRANGEBYSCORE', E .. 'changed:' .. ARGV[3], '(' .. after, '+inf')) do
    found[#found + 1] = name
    found[#found + 1] = call('HGET', E .. 'memory:' .. ARGV[3], name)
  end
  return found
end
-- crawl: how many wait, are suspended, are leased, and are done: P, F, R.
function ask.count()
  local cid = cid_of(ARGV[3], false)
  if not cid then return {'0', '0', '0', '0', '0', '0'} end
  local lives = call('HMGET', E .. 'waits', cid .. ':w', cid .. ':s', cid .. ':d')
  local done = call('HMGET', E .. round .. ':done', cid .. ':P', cid .. ':F', cid .. ':R')
  return {lives[1] or '0', lives[2] or '0', lives[3] or '0', done[1] or '0', done[2] or '0', done[3] or '0'}
end
-- writer: how many wait in all crawls; in which span something opens, '' for never; the launch, and what was heard.
function ask.next()
  local soonest = soonest_opening()
  return {
    call('HGET', E .. 'waits', 'w') or '0', soonest and string.format('%.0f', soonest - now) or '', about[9] or '',
    call('HGET', P .. 'heard', ARGV[3]) or '999',
  }
end
-- Over all crawls: the counts of what lives, of what is done, and of leases.
function ask.totals()
  return {call('HGETALL', E .. 'waits'), call('HVALS', E .. round .. ':done'), call('HLEN', E .. 'leases')}
end
-- cursor: the next one, then of some queues the name, how many wait, and 1 when it is closed, 2 for ever.
function ask.queues()
  local scanned = call('HSCAN', E .. 'queues', ARGV[3], 'COUNT', 100)
  local found = {scanned[1]}
  for item = 1, #scanned[2], 2 do
    local wake = tonumber(call('HGET', E .. 'q:' .. scanned[2][item], 'wake') or 0)
    found[#found + 1] = scanned[2][item]
    found[#found + 1] = scanned[2][item + 1]
    found[#found + 1] = wake == 0 and 0 or wake >= FOREVER and 2 or 1
  end
  return found
end
-- queue ...: 1 for each that is closed for ever.
function ask.suspended()
  local found = {}
  for item = 3, #ARGV do
    found[#found + 1] = tonumber(call('HGET', E .. 'q:' .. ARGV[item], 'wake') or 0) >= FOREVER and 1 or 0
  end
  return found
end
-- For a dump. Where, key, cursor: the next one, then some of a set, or the fields and values of some of a hash.
function ask.scan()
  local key = ({job = P, era = E, round = E .. round .. ':'})[ARGV[3]] .. ARGV[4]
  return call(call('TYPE', key).ok == 'set' and 'SSCAN' or 'HSCAN', key, ARGV[5], 'COUNT', 100)
end
-- A bucket of a crawl: digest, status, http, finished, history of each.
function ask.bucket()
  local name, found, kept = ARGV[3], {}, {}
  local cid, hex = string.match(name, '^(%w+):(%x+)$')
  local before = string.gsub(hex, '%x%x', function(two) return string.char(tonumber(two, 16)) end)
  local histories, states = call('HGETALL', P .. 'h:' .. name), call('HGETALL', E .. 's:' .. name)
  for item = 1, #histories, 2 do kept[histories[item]] = histories[item + 1] end
  local function put(field, visit)
    for _, word in ipairs({before .. field, visit and visit.status or '', visit and visit.http or 0,
      visit and visit.finished or 0, kept[field] or ''}) do found[#found + 1] = word end
    kept[field] = nil
  end
  for item = 1, #states, 2 do
    local visit = visit_of(states[item + 1])
    if visit and visit.round == round then put(states[item], visit) end
  end
  local left = {}
  for field in pairs(kept) do left[#left + 1] = field end
  for _, field in ipairs(left) do put(field) end
  return found
end
function ask.about()
  local more = call('HMGET', P .. 'about', 'version', 'launch')
  return {more[1] or '', more[2] or '', set_back, call('HGET', P .. 'heard', ARGV[3]) or '999'}
end
return ask[ARGV[2]]()
