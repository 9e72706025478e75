-- expect: succeeded: nil
local answer = tostring(rawget(null, "leaked"))
rawset(null, "leaked", "leaked")
return answer
