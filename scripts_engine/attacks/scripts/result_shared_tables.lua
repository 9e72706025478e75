-- expect: reply-too-large
local t = { "x" }
for _ = 1, 40 do t = { t, t } end
return t
