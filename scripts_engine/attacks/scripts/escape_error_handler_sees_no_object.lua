-- expect: succeeded: string
local _, kind = xpcall(function() return crypto.random_hex(-1) end, type)
return kind
