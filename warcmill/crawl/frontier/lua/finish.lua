-- ARGV: time, writer, number, is last, then ten for each, by the first:
--   F id token status http finished opens again history rest       the visit of a lease has ended
--   D id token until opens tries rest                              a lease is given back, its URI waits
--   V crawl digest status http finished again history opens by     a visit without a lease; by '1': a person says so;
--                                                                  '2': a journal, of which this Redis had lost it
--   W crawl digest until tries opens                               a URI waits; one that is leased, after its visit
--   H crawl digest history                                         what a visit has left
-- Spans: 0 is now or none, -1 for ever. Returns 1 for each that was done; of V: that waited. 2 for one whose URI was
-- asked for once more, as this Redis had lost its visit: of V, that had one since; of F, whose lease was given since. 3
-- for a V that has had one before.
local done = heard(ARGV[2], ARGV[3])
if done then return done end
local DONE = {P = true, F = true, R = true}
local function moment(span)
  span = tonumber(span)
  return span < 0 and FOREVER or span == 0 and 0 or now + span
end
local function held(id, token)
  local lease = call('HGET', E .. 'leases', id)
  return lease and string.match(lease, '^%d+') == token
end
local function wait_again(row, til)
  row.tries = 0
  put_row(row)
  wait_as_asked(row, til)
  call('HSET', P .. 'about', 'visited', 1)
end

-- End a lease; returns its row, and what was asked for. Nothing for one that has ended before, as those of a purged crawl
-- have: what a purge has left of these goes here.
local function ended(id, token, opens)
  if not held(id, token) then return nil end
  local row = row_of(tonumber(id))
  local gate, asked = end_lease(tonumber(id))
  leave(gate, tonumber(opens))
  if row and is_purged(row.cid) then
    delete(row)
    return nil
  end
  return row, asked
end

-- A journal has a visit of this row: if it is leased to another process, that asks for it once more.
local function note_twice(id)
  local token, writer = string.match(call('HGET', E .. 'leases', id) or '', '^(%d+) %w+ ([^\n]*)\n')
  if token and writer ~= ARGV[2] then call('SADD', E .. 'twice', token) end
end

local act = {}
function act.F(id, token, status, http, finished, opens, again, history, rest)
  local row, asked = ended(id, token, opens)
  if not row then return call('SREM', E .. 'twice', token) * 2 end
  put_history(row.cid, row.digest, history)
  local til = tonumber(asked)
  if is_renewed(asked) then
    wait_again(row, math.max(til, now))
  elseif again == '0' or (asked and not til) then
    end_wait(row, status, http, finished)
  else
    row.blob = rest
    wait_again(row, til and til >= FOREVER and til or moment(again))
  end
  return 1
end
function act.D(id, token, til, opens, tries, rest)
  local row, asked = ended(id, token, opens)
  if not row then return 0 end
  if not is_renewed(asked) then
    row.tries, row.blob = tries, rest
    put_row(row)
  end
  wait_as_asked(row, moment(til), asked)
  return 1
end
function act.V(crawl, digest, status, http, finished, again, history, opens, by)
  local cid = cid_of(crawl, true)
  local value = seen(cid, digest)
  local visit = value and visit_of(value)
  local row = value and not visit and row_of(tonumber(value))
  local lease = row and (by == '1' or status == 'R') and call('HGET', E .. 'leases', row.id)
  if lease then
    ask(row.id, lease, status .. ' ' .. http .. ' ' .. finished)
    return is_to_go(lease) and 0 or 1
  end
  local twice = by == '2' and visit and visit.round == round and (visit.finished >= tonumber(finished) and 2 or 3)
  if by == '2' and row then note_twice(row.id) end
  put_history(cid, digest, history)
  if row and again ~= '0' then
    local word = 'w'
    if not end_lease(row.id) then word = take_out(row) end
    count(cid, word, -1)
    count(cid, 'w', 1)
    wait_again(row, moment(again))
  elseif row then
    drop(row)
    put_seen(cid, digest, pack_visit(status, http, finished))
    count(cid, status, 1)
  else
    if visit and visit.round == round then count(cid, visit.status, -1) end
    put_seen(cid, digest, pack_visit(status, http, finished))
    count(cid, status, 1)
  end
  if row then leave(row.queue, tonumber(opens)) end
  return twice or row and 1 or 0
end
function act.W(crawl, digest, til, tries, opens)
  local cid = cid_of(crawl, false)
  local value = cid and seen(cid, digest)
  local row = value and not visit_of(value) and row_of(tonumber(value))
  if not row then return 0 end
  local lease = call('HGET', E .. 'leases', row.id)
  if is_to_go(lease) then return 0 end
  if tries ~= '' then row.tries = tries end
  put_row(row)
  if lease then
    ask(row.id, lease, (is_renewed(asked_of(lease)) and '+' or '') .. string.format('%.0f', moment(til)))
    leave(row.queue, tonumber(opens))
    return 1
  end
  local word = take_out(row)
  await(row, moment(til))
  count(cid, word, -1)
  count(cid, til == '-1' and 's' or 'w', 1)
  leave(row.queue, tonumber(opens))
  return 1
end
function act.H(crawl, digest, history)
  put_history(cid_of(crawl, true), digest, history)
  call('HSET', P .. 'about', 'visited', 1)
  return 1
end

local found = {}
for item = 5, #ARGV, 10 do found[#found + 1] = act[ARGV[item]](unpack(ARGV, item + 1, item + 9)) end
refresh_touched()
write_sums()
note_clock()
note_heard(ARGV[2], ARGV[3], ARGV[4])
local ended = 0
for place, answer in ipairs(found) do
  if answer == 1 and string.find('FV', ARGV[place * 10 - 5], 1, true) then ended = ended + 1 end
end
if ended > 0 and ARGV[2] ~= '' then call('HINCRBY', P .. 'visits', ARGV[2], ended) end
return found
