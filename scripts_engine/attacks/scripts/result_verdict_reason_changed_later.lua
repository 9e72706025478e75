-- expect: failed: Fail: reason must be a string
local verdict = Fail({})
verdict.reason = setmetatable({}, { __tostring = function() while true do end end })
return verdict
