-- expect: out-of-memory
local kept = {}
local text = ("x"):rep(1e6)
while true do kept[#kept + 1] = hex.encode(text) end
