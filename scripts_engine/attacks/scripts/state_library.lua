-- expect: succeeded: fresh
local answer = string.leaked or "fresh"
string.leaked = "leaked"
math.random = nil
return answer
