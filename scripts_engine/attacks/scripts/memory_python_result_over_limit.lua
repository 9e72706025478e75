-- expect: out-of-memory
local text = ("x"):rep(3e7)
return hex.encode(text)
