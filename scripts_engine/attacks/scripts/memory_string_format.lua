-- expect: out-of-memory
local s = ("x"):rep(3e7)
return string.format("%s%s%s", s, s, s)
