-- expect: failed: over 16 MiB
local t = { ("x"):rep(100) }
for _ = 1, 40 do t = { t, t } end
return ToJson(t)
