-- ARGV: time, the act, what it is of. The accounts that roles on many machines share: counts, signs of life, expiries,
-- stops, the policy, messages that wait. A crawl is `spiderid appid crawlid` as JSON.
local act = {}
local A = P .. 'accounts:'
local SLOT, WEEK, CLAIM = 60, 604800, 60000 -- seconds that are counted together; milliseconds
local seconds = math.floor(now / 1000)
-- What is lost with nothing else is in a log too, by number, which the job's machine copies to its disk.
local function note(...)
  local number = call('HINCRBY', A .. 'about', 'changes', 1)
  call('ZADD', A .. 'log', number, string.format('%.0f ', number) .. cjson.encode({...}))
end
-- role, number, name ...: add to counts.
function act.count()
  for i = 5, #ARGV do
    call('HINCRBY', A .. 'counts:' .. ARGV[3], 'lifetime ' .. ARGV[i], ARGV[4])
    call('HINCRBY', A .. 'counts:' .. ARGV[3], math.floor(seconds / SLOT) .. ' ' .. ARGV[i], ARGV[4])
  end
  return {}
end
-- role, window ...: for each count its name, the window, the number; those that no window has are forgotten.
function act.sums()
  local key, found, order = A .. 'counts:' .. ARGV[3], {}, {}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    local slot, name = string.match(all[i], '^(%S+) (.*)$')
    local number = tonumber(all[i + 1])
    local age = slot ~= 'lifetime' and seconds - tonumber(slot) * SLOT
    if age and age > WEEK + SLOT then
      call('HDEL', key, all[i])
    else
      local of = found[name] or {}
      found[name] = of
      if not age then of.lifetime = (of.lifetime or 0) + number end
      for w = 4, #ARGV do
        if age and age < tonumber(ARGV[w]) then of[ARGV[w]] = (of[ARGV[w]] or 0) + number end
      end
    end
  end
  for name, of in pairs(found) do
    for window, number in pairs(of) do
      order[#order + 1] = name
      order[#order + 1] = window
      order[#order + 1] = number
    end
  end
  return order
end
-- name, value: note a number that only grows, but begins again; returns by how much it grew.
function act.grown()
  local before, value = tonumber(call('HGET', A .. 'seen', ARGV[3]) or 0), tonumber(ARGV[4])
  call('HSET', A .. 'seen', ARGV[3], ARGV[4])
  return value >= before and value - before or value
end
-- role, who, span: a sign of life. Who is dead is forgotten.
function act.live()
  local key = A .. 'lives:' .. ARGV[3]
  call('ZADD', key, string.format('%.0f', now + tonumber(ARGV[5])), ARGV[4])
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', now))
  return {}
end
function act.leave() return call('ZREM', A .. 'lives:' .. ARGV[3], ARGV[4]) end
function act.lives() return call('ZRANGEBYSCORE', A .. 'lives:' .. ARGV[3], string.format('%.0f', now), '+inf') end
-- crawl, time: when it expires, in seconds; 0: it does not.
function act.expire()
  call('HDEL', A .. 'claimed', ARGV[3])
  if ARGV[4] == '0' then
    if call('ZREM', A .. 'expiries', ARGV[3]) == 0 then return {} end
  else
    call('ZADD', A .. 'expiries', ARGV[4], ARGV[3])
  end
  note('expire', ARGV[3], ARGV[4])
  return {}
end
-- crawl ...: when each expires, or nothing.
function act.expires()
  local found = {}
  for i = 3, #ARGV do found[i - 2] = call('ZSCORE', A .. 'expiries', ARGV[i]) end
  return found
end
-- The crawls that have expired, and that nobody else takes up now.
function act.claim_expired()
  local found, til = {}, string.format('(%.3f', now / 1000)
  for _, crawl in ipairs(call('ZRANGEBYSCORE', A .. 'expiries', '-inf', til, 'LIMIT', 0, 1000)) do
    if tonumber(call('HGET', A .. 'claimed', crawl) or 0) < now - CLAIM then
      call('HSET', A .. 'claimed', crawl, string.format('%.0f', now))
      found[#found + 1] = crawl
    end
  end
  return found
end
-- crawl: of it only what is asked for is fetched from now on.
function act.stop()
  if call('SADD', A .. 'stops', ARGV[3]) == 1 then note('stop', ARGV[3]) end
  return {}
end
function act.is_stopped() return call('SISMEMBER', A .. 'stops', ARGV[3]) end
-- place, message, crawl or '', most: a message waits for the job, a stop of that crawl. Returns 0 if too many wait.
function act.put_aside()
  if ARGV[6] and call('HLEN', A .. 'aside') >= tonumber(ARGV[6]) then return 0 end
  if call('HSETNX', A .. 'aside', ARGV[3], ARGV[4]) == 1 then
    call('RPUSH', A .. 'aside_order', ARGV[3])
    if ARGV[5] ~= '' then call('HSET', A .. 'aside_stops', ARGV[3], ARGV[5]) end
    note('put_aside', ARGV[3], ARGV[4], ARGV[5])
  end
  return 1
end
function act.stops_aside() return call('HVALS', A .. 'aside_stops') end
-- All messages that wait, in their order; nothing while another process has them.
function act.claim_aside()
  local order = call('LRANGE', A .. 'aside_order', 0, 9999)
  if #order == 0 or not call('SET', A .. 'aside_claim', 1, 'NX', 'PX', CLAIM) then return {} end
  local found = {}
  for _, place in ipairs(order) do found[#found + 1] = call('HGET', A .. 'aside', place) end
  return found
end
function act.end_aside()
  if call('HDEL', A .. 'aside', ARGV[3]) == 0 then return {} end
  call('HDEL', A .. 'aside_stops', ARGV[3])
  call('LREM', A .. 'aside_order', 1, ARGV[3])
  note('end_aside', ARGV[3])
  return {}
end
function act.free_aside() return call('DEL', A .. 'aside_claim') end
-- domain, rate as JSON or '': the rate of a domain.
function act.set_rate()
  if ARGV[4] == '' then call('HDEL', A .. 'rates', ARGV[3]) else call('HSET', A .. 'rates', ARGV[3], ARGV[4]) end
  note('set_rate', ARGV[3], ARGV[4])
  return {}
end
-- domain, yes or no: a domain that is not crawled.
function act.ban()
  call(ARGV[4] == '1' and 'SADD' or 'SREM', A .. 'bans', ARGV[3])
  note('ban', ARGV[3], ARGV[4])
  return {}
end
function act.policy() return {call('HGETALL', A .. 'rates'), call('SMEMBERS', A .. 'bans')} end
-- 1 if this Redis has all of the copy, which an emptied one has not; and some changes, each `number change`.
function act.changes() return {call('HEXISTS', A .. 'about', 'filled'), call('ZRANGE', A .. 'log', 0, 499)} end
-- first, last: the numbers of changes that the copy has.
function act.copied() return call('ZREMRANGEBYSCORE', A .. 'log', ARGV[3], ARGV[4]) end
-- This Redis has all of the copy.
function act.filled() return call('HSET', A .. 'about', 'filled', 1) end
note_clock()
return act[ARGV[2]]()
