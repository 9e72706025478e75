-- expect: succeeded: nil
local answer = tostring(("").leaked)
string.leaked = "leaked"
return answer
