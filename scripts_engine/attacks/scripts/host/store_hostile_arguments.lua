-- expect: succeeded: unharmed
local hostile = { 0 / 0, math.huge, -1, {}, "\0", "\255", ("x"):rep(1e5), function() end, "'; DROP TABLE x; --" }
for _, a in ipairs(hostile) do
  for _, b in ipairs(hostile) do
    pcall(store.get, a)
    pcall(store.set, a, b, b)
    pcall(store.delete, a)
    pcall(store.increment, a, b)
    pcall(store.set_if_absent, a, b, b)
    pcall(store.set_if_absent, a, b, { ttl = b })
    pcall(store.list, a, b)
    pcall(secrets.get, a)
  end
end
return "unharmed"
