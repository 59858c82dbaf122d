-- Attempts that hold something.
local function main()
  return {'ok', call('HKEYS', base .. 'attempts')}
end
