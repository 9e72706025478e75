-- expect: out-of-memory
local t, piece = {}, ("x"):rep(1e6)
for i = 1, 1000 do t[i] = piece end
return table.concat(t)
