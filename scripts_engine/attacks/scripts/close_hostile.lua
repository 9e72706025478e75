-- expect: failed: boom in close
local guard <close> = setmetatable({}, { __close = function() error("boom in close") end })
error("first")
