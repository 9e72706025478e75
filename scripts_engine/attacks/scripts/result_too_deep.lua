-- expect: failed: nested deeper than 128 levels
local t = {}
for _ = 1, 1000 do t = { t } end
return t
