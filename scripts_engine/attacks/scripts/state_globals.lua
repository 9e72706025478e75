-- expect: succeeded: fresh
local answer = leaked or "fresh"
leaked = "leaked"
return answer
