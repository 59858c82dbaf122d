-- Attempts that are over, by token. Whether something may be claimable now that was not.
local function main()
  local tokens, room = {}, false
  for at = 4, #ARGV do tokens[#tokens + 1] = ARGV[at] end
  holds.prefetch(tokens)
  for _, token in ipairs(tokens) do room = holds.release(token) or room end
  standing.settle()
  local claimable = openings > 0 or (room and call('EXISTS', base .. 'demand') == 1)
  return {'ok', claimable and 1 or 0}
end
