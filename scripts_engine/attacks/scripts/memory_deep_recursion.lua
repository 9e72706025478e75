-- expect: out-of-memory
local function deep() return 1 + deep() end
return deep()
