-- expect: failed: Retry: after must be a number
local verdict = Retry({})
verdict.after = 0 / 0
return verdict
