-- ARGV: time, the act, what it is of. Calls of a crawl from any machine: a line asks, a line answers.
-- `listens` expires when the crawl has not looked for a while. A call that nobody has taken up expires by its deadline,
-- and an answer that nobody fetches does too.
local act = {}
local QUIET, KEPT, LATE = 15000, 120000, 5000 -- milliseconds
local function line_of(id) return P .. 'call:' .. id end
local function answer_of(id) return P .. 'answer:' .. id end
-- id, line, span: ask a crawl. Returns 0 when none listens.
function act.ask()
  if call('EXISTS', P .. 'listens') == 0 then return 0 end
  call('SET', line_of(ARGV[3]), ARGV[4], 'PX', ARGV[5] + LATE)
  call('RPUSH', P .. 'calls', ARGV[3])
  return 1
end
-- number: the crawl listens, and takes up some calls. Returns the id and the line of each.
function act.take()
  local found = {}
  call('SET', P .. 'listens', 1, 'PX', QUIET)
  while #found < 2 * tonumber(ARGV[3]) do
    local id = call('LPOP', P .. 'calls')
    if not id then break end
    local line = call('GET', line_of(id))
    if line then
      call('DEL', line_of(id))
      found[#found + 1], found[#found + 2] = id, line
    end
  end
  return found
end
-- id, line: the answer.
function act.answer() return call('SET', answer_of(ARGV[3]), ARGV[4], 'PX', KEPT) end
-- id, is last: the answer. While there is none: nothing, if one may come. If no crawl listens, or who asked waits no
-- longer, 0 for a call that nobody has taken up, which nobody will; 1 for one of which it is not known.
function act.answered()
  local line = call('GET', answer_of(ARGV[3]))
  if line then
    call('DEL', answer_of(ARGV[3]))
    return line
  end
  if ARGV[4] ~= '1' and call('EXISTS', P .. 'listens') == 1 then return false end
  return 1 - call('DEL', line_of(ARGV[3]))
end
-- The crawl listens no longer.
function act.hang_up() return call('DEL', P .. 'listens', P .. 'calls') end
return act[ARGV[2]]()
