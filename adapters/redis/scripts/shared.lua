-- What tenants got, those with the most claims first: tenant, claims, entitled, oldest.
local function main()
  local views = {}
  for _, tenant in ipairs(call('ZREVRANGE', base .. 'served', 0, body.limit - 1)) do
    local claimed, entitled = shares.view(tenant)
    if claimed then
      local oldest = call('ZRANGE', base .. 'a:' .. tenant, 0, 0)[1] or ''
      for _, value in ipairs({tenant, claimed, string.format('%.17g', entitled), oldest}) do views[#views + 1] = value end
    end
  end
  return {'ok', views}
end
