-- expect: out-of-memory
local t = {}
for i = 1, 64 do t["k" .. i] = ("\255"):rep(1e6) end
return #url.build_query(t)
