-- expect: failed: stack overflow
local t = setmetatable({}, {})
getmetatable(t).__index = function(self, key) return self[key] end
return t.x
