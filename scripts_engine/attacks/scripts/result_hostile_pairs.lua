-- expect: succeeded: {"a":1}
return setmetatable({ a = 1 }, { __pairs = function() while true do end end })
