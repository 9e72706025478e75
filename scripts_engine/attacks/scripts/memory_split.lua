-- expect: out-of-memory
local parts = {}
for i = 1, 100 do parts[i] = (","):rep(5e6):split(",") end
