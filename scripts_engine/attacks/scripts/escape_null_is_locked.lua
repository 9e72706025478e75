-- expect: succeeded: null false
pcall(rawset, null, "x", 1)
pcall(setmetatable, null, {})
return tostring(null) .. " " .. tostring(getmetatable(null))
