-- attack: secrets_of_others
-- expect: succeeded: nothing
for _, name in ipairs{ "SECRET_KEY", "MOONHOOK_PEPPERS", "DATABASE_URL", "EMAIL_URL", "*", "%", "", "../x",
    "HONEST_KEY", "HONEST_KEY\0", "honest_key", "' OR 1=1 --" } do
  if secrets.get(name) then return "found " .. name end
end
return "nothing"

-- attack: store_flood
-- expect: succeeded: bounded
-- limits: wall=20
local count = 0
local ok, problem = pcall(function()
  for i = 1, 1e9 do
    store.set("flood" .. i, i, 60)
    count = count + 1
  end
end)
return not ok and count <= 1000 and "bounded" or "endless"

-- attack: store_hostile_arguments
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

-- attack: store_key_too_long
-- expect: failed: 1 to 256 bytes
store.set(("k"):rep(257), 1)

-- attack: store_list_is_bounded
-- expect: succeeded: bounded
for i = 1, 20 do store.set(("k"):rep(250) .. i, 1, 60) end
for _, limit in ipairs{ 0, -1, 1001, 1e9, 1.5, 0 / 0, math.huge, math.maxinteger, math.mininteger } do
  if pcall(store.list, "", limit) then return "listed " .. limit end
end
return #store.list("kkk", 1000) <= 1000 and "bounded" or "endless"

-- attack: store_list_of_others
-- expect: succeeded: nothing
for _, prefix in ipairs{ "", "h", "honest", "%", "_", "*", "hones_", "h%", "' OR 1=1 --", "\0", "\255" } do
  for _, key in ipairs(store.list(prefix, 1000)) do
    if key == "honest" then return "found through " .. prefix end
  end
end
return "nothing"

-- attack: store_of_others
-- expect: succeeded: nothing
return store.get("honest") == nil and "nothing" or "found"

-- attack: store_set_if_absent_of_others
-- expect: succeeded: own
-- The honest tenant has this key: whether it does must not show.
local first, second = store.set_if_absent("honest_once", "mine"), store.set_if_absent("honest_once", "mine")
store.delete("honest_once")
return first and not second and "own" or "shared"

-- attack: store_value_too_large
-- expect: failed: 64 KiB
store.set("k", ("x"):rep(64 * 1024))
