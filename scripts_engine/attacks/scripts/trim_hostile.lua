-- expect: succeeded: trimmed
local spaces = (" "):rep(2e6)
for _ = 1, 20 do assert((spaces .. "a" .. spaces .. "b" .. spaces):trim() == "a" .. spaces .. "b") end
assert(#spaces:trim() == 0 and ("\0 \255 "):trim() == "\0 \255" and not pcall(string.trim, {}))
return "trimmed"
