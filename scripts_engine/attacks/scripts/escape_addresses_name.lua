-- expect: succeeded: X
return tostring(setmetatable({}, { __name = "X" }))
