-- expect: failed: a table holds itself
local t = {}
t.t = { t }
return t
