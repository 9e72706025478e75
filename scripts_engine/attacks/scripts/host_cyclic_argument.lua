-- expect: failed: a table holds itself
local t = {}
t.t = t
store.set("key", t)
