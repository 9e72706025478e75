-- expect: succeeded: [{}]
local metatable = { __eq = function() while true do end end }
return { setmetatable({}, metatable) and object({}) }
